# SPDX-License-Identifier: Apache-2.0
# The Python package is built by pip (pyproject.toml), not by make; it is in the tarball.
python_files = python/pyproject.toml python/CMakeLists.txt python/README.md python/bind.py python/develop.sh \
	python/stubs.py python/wheel.sh python/yoke_command.py \
	python/src/args.cc python/src/core.h python/src/data.cc python/src/engine.cc python/src/serve.cc python/src/fit.cc python/src/main.cc python/src/model.cc python/src/module.h python/src/nn.cc python/src/op.cc \
	python/src/share.cc python/src/tensor.cc python/src/wait.cc \
	python/yoke/__init__.py python/yoke/__main__.py python/yoke/_arrays.py python/yoke/_engine.py python/yoke/_fft.py python/yoke/_serve.py python/yoke/_fit.py python/yoke/_methods.py python/yoke/_common.py python/yoke/_shapes.py python/yoke/_reductions.py python/yoke/_creation.py python/yoke/_elements.py python/yoke/_indexing.py python/yoke/_statistics.py python/yoke/_matrices.py python/yoke/_resolvents.py python/yoke/_sampling.py python/yoke/_grad.py python/yoke/_index.py python/yoke/_lbfgs.py python/yoke/_model.py python/yoke/_op.py \
	python/yoke/_print.py python/yoke/_record.py python/yoke/_tensor.py python/yoke/_with.py python/yoke/optim.py python/yoke/py.typed \
	python/yoke/linalg.py python/yoke/random.py \
	python/yoke/nn/__init__.py python/yoke/nn/_activations.py python/yoke/nn/_attention.py python/yoke/nn/_containers.py \
	python/yoke/nn/_conv.py python/yoke/nn/_dropout.py python/yoke/nn/_function.py python/yoke/nn/_layer.py \
	python/yoke/nn/_linear.py python/yoke/nn/_losses.py python/yoke/nn/_margins.py python/yoke/nn/_module.py \
	python/yoke/nn/_norm.py python/yoke/nn/_padding.py python/yoke/nn/_pooling.py python/yoke/nn/_recurrent.py \
	python/yoke/nn/_sequences.py python/yoke/nn/_shaping.py python/yoke/nn/_transformer.py python/yoke/nn/functional.py python/yoke/nn/init.py \
	python/tests/test_nn_parity.py \
	python/examples/digits.py python/tests/conftest.py python/tests/test_algebra.py python/tests/test_bad.py python/tests/test_devices.py python/tests/test_docs.py python/tests/test_engine.py python/tests/test_fft.py python/tests/test_recurrent.py python/tests/test_finetune.py python/tests/test_headers.py python/tests/test_linalg.py python/tests/test_manners.py python/tests/test_models.py python/tests/test_modules.py python/tests/test_nn.py python/tests/test_numpy.py python/tests/test_op.py python/tests/test_ops.py python/tests/test_parity.py python/tests/test_real.py python/tests/test_records.py python/tests/test_serve.py \
	python/tests/test_optim.py python/tests/test_share.py python/tests/test_tensor.py python/tests/test_torch.py
EXTRA_DIST += $(python_files)

# what python/develop.sh builds
clean-local: clean-python
clean-python:
	rm -rf python/gen python/obj python/Makefile python/python python/yoke/_core.*
	test ! -d python || find python -type l -exec rm -f {} +
.PHONY: clean-python
