# SPDX-License-Identifier: Apache-2.0
# Compares pipelines and cubes with other projects' implementations: fit_clients.py YOKE
import itertools, json, os, shutil, subprocess, sys

import numpy as np

yoke = sys.argv[1]
rng = np.random.default_rng(20261)
TYPES = {'u8': '|u1', 'i16': 'i2', 'i32': 'i4', 'f32': 'f4', 'f64': 'f8', 'u16': 'u2', 'u32': 'u4', 'i64': 'i8', 'u64': 'u8'}


def verdict(title, wrong):
    print('ok ' + title if not wrong else 'not ok %s\n%s' % (title, wrong), flush=True)


def skip(title, why):
    print('ok %s # SKIP %s' % (title, why), flush=True)


def module(name):
    try:
        return __import__(name, fromlist=['x'])
    except ImportError:
        return None


def run(*words):
    done = subprocess.run([yoke] + list(words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return '' if done.returncode == 0 else 'yoke %s: %s' % (' '.join(words), done.stdout)


def convert(*words):
    return run('cubes', 'convert', *words, 'overwrite=1')


def states(folder):
    raw = open(folder + '/pipeline.safetensors', 'rb').read()
    n = int.from_bytes(raw[:8], 'little')
    head = json.loads(raw[8:8 + n])
    return {k: np.frombuffer(raw[8 + n + v['data_offsets'][0]:8 + n + v['data_offsets'][1]], '<f4').reshape(v['shape']).astype(float)
            for k, v in head.items() if k != '__metadata__'}


wrong = run('cubes', 'make', 'set', 'count=6', 'lines=40', 'samples=32', 'bands=12', 'seed=%d' % rng.integers(1000))
cubes = [np.fromfile('set/cube_%05d.img' % i, '<f4').reshape(40, 32, 12) for i in range(6)]
labels = [np.load('set/cube_%05d_label.npy' % i)[..., 0] for i in range(6)]
pixels = np.concatenate([c.reshape(-1, 12) for c in cubes[:5]]).astype(float)
with open('both.json', 'w') as f:
    json.dump({'nodes': [{'name': 'pca', 'type': 'pca', 'k': 4}, {'name': 'rx', 'type': 'rx', 'eps': 0, 'in': 'input'},
                         {'name': 'both', 'type': 'standard', 'in': ['pca', 'rx']}], 'data': {'cubes': 'set/*.hdr', 'batch': 2}}, f)
with open('scores.json', 'w') as f:
    json.dump({'nodes': [{'name': 'scale', 'type': 'min_max'}, {'name': 'pca', 'type': 'pca', 'k': 5}, {'name': 'rx', 'type': 'rx'},
                         {'name': 'logit', 'type': 'logit'}],
               'metrics': ['roc_auc', 'f1', 'precision', 'recall', 'accuracy', 'iou', 'quantiles'],
               'data': {'cubes': 'set/*.hdr', 'labels': 'set/*_label.npy', 'batch': 4, 'split': [0.5, 0.5, 0]}}, f)
with open('ties.json', 'w') as f: # scores of two values, and all equal
    json.dump({'nodes': [{'name': 'rx', 'type': 'rx'}, {'name': 'logit', 'type': 'logit'}, {'name': 'cut', 'type': 'decide'},
                         {'name': 'one', 'type': 'decide', 't': 2}],
               'metrics': [{'type': 'roc_auc', 'of': 'cut'}, {'type': 'roc_auc', 'of': 'one'}],
               'data': {'cubes': 'set/*.hdr', 'labels': 'set/*_label.npy', 'batch': 4, 'split': [0.5, 0.5, 0]}}, f)
wrong = wrong or run('fit', 'ties.json', 'out=ties') or run('apply', 'ties', 'out=ties/maps', 'nodes=cut', 'format=npy')
wrong = wrong or run('fit', 'both.json', 'out=both') or run('apply', 'both', 'out=maps', 'nodes=rx', 'format=npy')
wrong = wrong or run('fit', 'scores.json', 'out=scores') or run('apply', 'scores', 'out=scores/maps', 'format=npy')
verdict('runs', wrong)

# ---- scikit-learn ----

decomposition, measures = module('sklearn.decomposition'), module('sklearn.metrics')
if not decomposition or wrong:
    skip('scikit-learn', 'not installed')
else:
    pca, ours = decomposition.PCA(4).fit(pixels), states('both')
    angle = np.arccos(np.clip(np.linalg.svd(pca.components_ @ ours['pca.w'].T)[1], -1, 1)).max()
    ratio = abs(pca.explained_variance_ratio_ - ours['pca.ratio']).max()
    verdict('PCA: angle of subspaces %.2g, ratios %.2g apart' % (angle, ratio), '' if angle < 1e-3 and ratio < 1e-6 else 'too far')
    score = np.concatenate([np.load('scores/maps/cube_%05d_logit.npy' % i).reshape(-1) for i in range(3, 6)])
    label = np.concatenate([m.reshape(-1) for m in labels[3:]]) != 0
    last = [json.loads(l) for l in open('scores/metrics.jsonl')][-1]
    want = {'roc_auc': measures.roc_auc_score(label, score), 'f1': measures.f1_score(label, score > 0),
            'precision': measures.precision_score(label, score > 0), 'recall': measures.recall_score(label, score > 0),
            'accuracy': measures.accuracy_score(label, score > 0), 'iou': measures.jaccard_score(label, score > 0),
            'quantiles_0.9': np.quantile(score, 0.9)}
    far = ['%s: %.9g of %.9g' % (k, last[k], v) for k, v in want.items() if abs(last[k] - v) > 1e-6 * (1 + abs(v))]
    verdict('metrics of %d scores' % len(score), '\n'.join(far))
    cut = np.concatenate([np.load('ties/maps/cube_%05d_cut.npy' % i).reshape(-1) for i in range(3, 6)])
    last, want = [json.loads(l) for l in open('ties/metrics.jsonl')][-1], measures.roc_auc_score(label, cut)
    verdict('ROC-AUC of ties %.6f' % want, '' if abs(last['roc_auc'] - want) < 1e-9 and last['roc_auc2'] == 0.5 else str(last))

# ---- Spectral Python ----

spectral = module('spectral')
if not spectral or wrong:
    skip('Spectral Python', 'not installed')
else:
    import spectral.io.envi as envi
    stats = spectral.calc_stats(pixels.reshape(5 * 40, 32, 12))
    want, got = spectral.rx(cubes[5].astype(float), background=stats), np.load('maps/cube_00005_rx.npy')[..., 0]
    far = abs(want - got).max() / want.max()
    verdict('RX: %.2g of the largest' % far, '' if far < 1e-4 else 'too far')
    with open('local.json', 'w') as f:
        json.dump({'nodes': [{'name': 'rx', 'type': 'local_rx', 'inner': 3, 'outer': 9, 'eps': 0}], 'data': {'cubes': 'scene*.hdr'}}, f)
    scenes, far = [rng.normal(size=shape) * np.arange(1, 8) + 1000 for shape in ((11, 27, 7), (30, 10, 7), (16, 16, 7))], []
    for i, scene in enumerate(scenes):
        envi.save_image('scene%d.hdr' % i, scene.astype('f4'), interleave='bil', force=True, ext='img')
    said = run('fit', 'local.json', 'out=local') or run('apply', 'local', 'out=local/maps', 'format=npy')
    for i, scene in enumerate(scenes):
        want = spectral.rx(scene.astype('f4').astype(float), window=(3, 9))
        far.append(np.inf if said else abs(np.load('local/maps/scene%d_rx.npy' % i)[..., 0] / want - 1).max())
    verdict('local RX of scenes of different sizes, edges included: %.2g apart' % max(far), said or ('' if sum(far) < 1e-5 else 'too far'))
    ours, theirs = [], []
    for (name, numpy), order, big in itertools.product(TYPES.items(), ('bsq', 'bil', 'bip'), (0, 1)):
        x = rng.integers(0, 200, (6, 5, 3)).astype(numpy)
        what = '%s %s %d' % (name, order, big)
        np.save('x.npy', x.astype('i4'))
        said = convert('x.npy', 'ours.hdr', 'type=' + name, 'interleave=' + order, 'order=' + ('little', 'big')[big])
        if said or not (np.asarray(envi.open('ours.hdr').load()) == x).all():
            ours.append(what + said)
        envi.save_image('theirs.hdr', x, dtype=x.dtype, interleave=order, byteorder=big, force=True, ext='img')
        said = convert('theirs.hdr', 'back.npy')
        if said or not (np.load('back.npy') == x).all():
            theirs.append(what + said)
    verdict('Spectral Python reads ours', '\n'.join(ours))
    verdict('ours reads those of Spectral Python', '\n'.join(theirs))

# ---- GDAL ----

if not shutil.which('gdal_translate') or wrong:
    skip('GDAL', 'not installed')
else:
    far = []
    for name, order in itertools.product(('u8', 'i16', 'i32', 'f32', 'f64', 'u16', 'u32'), ('bsq', 'bil', 'bip')):
        x = rng.integers(0, 200, (6, 5, 3)).astype(TYPES[name])
        np.save('x.npy', x)
        said = convert('x.npy', 'ours.hdr', 'type=' + name, 'interleave=' + order)
        done = subprocess.run(['gdal_translate', '-q', '-of', 'ENVI', '-co', 'INTERLEAVE=' + order.upper(), '-co', 'SUFFIX=REPLACE',
                               'ours.img', 'gdal.img'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = said or (done.stdout if done.returncode else '') or convert('gdal.hdr', 'back.npy')
        if said or not (np.load('back.npy') == x).all():
            far.append('%s %s %s' % (name, order, said))
    info = subprocess.run(['gdalinfo', 'ours.img'], stdout=subprocess.PIPE, text=True).stdout
    verdict('GDAL reads ours and writes what ours reads', '\n'.join(far) or ('' if 'Size is 5, 6' in info else info))

# ---- SciPy, h5py, NumPy ----

scipy, h5py = module('scipy.io'), module('h5py')
x = rng.integers(0, 200, (6, 5, 3))
open('no.mat', 'wb').write(bytes(200))
no_matio = 'libmatio' in run('cubes', 'info', 'no.mat')
if not scipy or wrong:
    skip('SciPy', 'not installed')
elif no_matio:
    skip('SciPy', 'there is no libmatio')
else:
    far = []
    for (name, numpy), packed, flat in itertools.product(TYPES.items(), (False, True), (False, True)):
        a = x[..., 0].astype(numpy) if flat else x.astype(numpy)
        scipy.savemat('x.mat', {'text': 'hi', 'cube': a}, do_compression=packed)
        said = convert('x.mat', 'back.npy')
        if said or not (np.load('back.npy').reshape(a.shape) == a).all():
            far.append('%s %s %s %s' % (name, packed, flat, said))
    verdict('MAT files of SciPy', '\n'.join(far))


def save73(path, **variable):
    """As MATLAB writes version 7.3: HDF5 behind 512 bytes, axes the other way, and the class as an attribute of text, or as h5py
    writes one by itself, padded, for a class in bytes, or no class for None."""
    with h5py.File(path, 'w', userblock_size=512) as f:
        for name, (of, value, options) in variable.items():
            data, text = f.create_dataset(name, data=value.T, **options), h5py.h5t.C_S1.copy()
            if isinstance(of, bytes):
                data.attrs['MATLAB_class'] = np.bytes_(of)
            if not isinstance(of, str):
                continue
            text.set_size(len(of))
            attribute = h5py.h5a.create(data.id, b'MATLAB_class', text, h5py.h5s.create(h5py.h5s.SCALAR))
            attribute.write(np.array(of.encode(), 'S%d' % len(of)), mtype=text)
    with open(path, 'r+b') as f:
        f.write(b'MATLAB 7.3 MAT-file, Platform: GLNXA64, HDF5 schema 1.00 .'.ljust(116) + bytes(8) + b'\0\2IM')


CLASS = {'u8': 'uint8', 'i16': 'int16', 'i32': 'int32', 'f32': 'single', 'f64': 'double', 'u16': 'uint16', 'u32': 'uint32',
         'i64': 'int64', 'u64': 'uint64'}
if not h5py or wrong:
    skip('h5py', 'not installed')
elif no_matio:
    skip('h5py', 'there is no libmatio')
else:
    far = []
    for (name, numpy), packed, flat in itertools.product(TYPES.items(), (False, True), (False, True)):
        a = x[..., 0].astype(numpy) if flat else x.astype(numpy)
        text = ('char', np.array([[104, 105]], 'u2'), {})
        save73('x.mat', atext=text, cube=(CLASS[name], a, {'compression': 'gzip'} if packed else {}), other=('double', 2.0 * a, {}))
        said = convert('x.mat', 'back.npy') or convert('x.mat', 'other.npy', 'variable=other')
        if said or not (np.load('back.npy').reshape(a.shape) == a).all() or not (np.load('other.npy').reshape(a.shape) == 2.0 * a).all():
            far.append('%s %s %s %s' % (name, packed, flat, said))
    verdict('MAT files of version 7.3', '\n'.join(far))
    far = []
    for (name, numpy), of in itertools.product(TYPES.items(), (False, True)):
        save73('h.mat', cube=(CLASS[name].encode() if of else None, x.astype(numpy), {}))
        said = convert('h.mat', 'back.npy')
        if said or not (np.load('back.npy') == x).all():
            far.append('%s %s %s' % (name, of, said))
    verdict('those whose class is padded, or not there', '\n'.join(far))
    save73('h.mat', cube=(None, x.astype('f4'), {}))
    with h5py.File('h.mat', 'r+') as f:
        f['cube'].attrs['MATLAB_class'] = 'single'
    said = convert('h.mat', 'back.npy')
    verdict('a class of variable length is read, or named', '' if not said or 'MATLAB_class' in said else said)
    whole, far = open('x.mat', 'rb').read(), []
    cases = {'%d bytes' % n: whole[:n] for n in [600, 700, len(whole) - 1] + list(rng.integers(128, len(whole), 6))}
    cases['no superblock'] = whole[:512] + bytes(len(whole) - 512)
    save73('x.mat', cube=('double', np.zeros((6, 5, 3), [('real', 'f8'), ('imag', 'f8')]), {}))
    cases['complex numbers'] = open('x.mat', 'rb').read()
    for what, raw in cases.items():
        open('x.mat', 'wb').write(raw)
        said = convert('x.mat', 'back.npy')
        if said.count('\n') != 1 or 'x.mat' not in said:
            far.append('%s: %s' % (what, said or 'is read'))
    verdict('and %d that are refused in a line' % len(cases), '\n'.join(far))
far = []
for (name, numpy), order, big in itertools.product(TYPES.items(), 'CF', '<>'):
    a = np.asarray(x, dtype=numpy if numpy[0] == '|' else big + numpy, order=order)
    np.save('x.npy', a)
    said = convert('x.npy', 'back.npy')
    if said or not (np.load('back.npy') == a).all():
        far.append('%s %s %s %s' % (name, order, big, said))
verdict('arrays of NumPy', '\n'.join(far))
