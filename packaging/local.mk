# SPDX-License-Identifier: Apache-2.0
# Packages: files for distributions, in the tarball alone.
EXTRA_DIST += \
	packaging/conda/build-library.sh \
	packaging/conda/build-python.sh \
	packaging/conda/recipe.yaml \
	packaging/container/Containerfile \
	packaging/debian/changelog \
	packaging/debian/clean \
	packaging/debian/control \
	packaging/debian/copyright \
	packaging/debian/libyoke-bin.install \
	packaging/debian/libyoke-dev.install \
	packaging/debian/libyoke0.install \
	packaging/debian/libyoke0.symbols \
	packaging/debian/not-installed \
	packaging/debian/rules \
	packaging/debian/source/format \
	packaging/debian/tests/command \
	packaging/debian/tests/control \
	packaging/debian/tests/library \
	packaging/debian/tests/python \
	packaging/debian/yoke-cuda.install \
	packaging/debian/yoke-mpich.install \
	packaging/debian/yoke-opencl.install \
	packaging/debian/yoke-openmpi.install \
	packaging/debian/yoke-rocm.install \
	packaging/debian/yoke.install \
	packaging/rpm/yoke.rpmlintrc \
	packaging/rpm/yoke.spec
