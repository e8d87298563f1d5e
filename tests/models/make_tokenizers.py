#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the small tokenizers of tests/tokenizer.c and what the reference libraries make of some texts.

	make_tokenizers.py TEXT OUT

TEXT is any English text to train on; OUT gets NAME.json, NAME.model and tokenizer_cases.h.  Needs the packages
tokenizers and sentencepiece; the header names the versions that were used.
"""
import sys

import sentencepiece
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

corpus, out = sys.argv[1:]
lines = open(corpus, encoding='utf-8').read().split('\n')[:400]
lines += ['Größe naïve café ﬁ ½ 北京大学 東京 Привет мир 안녕 🙂👍🏽 e\u0301'] * 20
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
BYTES = ['<0x%02X>' % i for i in range(256)]
made = {}


def bpe(vocab, special, alphabet=False, **kw):
    return trainers.BpeTrainer(vocab_size=vocab, special_tokens=special, show_progress=False,
                               initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else [], **kw)


def make(name, model, trainer, normalizer=None, splitter=None, decoder=None, post=None, added=()):
    t = Tokenizer(model)
    for key, value in (('normalizer', normalizer), ('pre_tokenizer', splitter), ('decoder', decoder)):
        if value:
            setattr(t, key, value)
    t.train_from_iterator(lines, trainer)
    if post:
        t.post_processor = post
    t.add_tokens(list(added))
    t.save('%s/%s.json' % (out, name), pretty=False)
    made[name] = t


make('gpt2', models.BPE(), bpe(400, ['<|endoftext|>'], True), splitter=pre_tokenizers.ByteLevel(add_prefix_space=False),
     decoder=decoders.ByteLevel(), post=processors.ByteLevel(trim_offsets=False),
     added=[AddedToken('foo', single_word=True), AddedToken('<mask>', lstrip=True, normalized=False)])
make('llama3', models.BPE(ignore_merges=True), bpe(400, ['<|begin|>', '<|eot|>'], True),
     splitter=pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), 'isolated'),
                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
     decoder=decoders.ByteLevel(),
     post=processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(
         single='<|begin|> $A', special_tokens=[('<|begin|>', 0)])]))
make('llama2', models.BPE(unk_token='<unk>', byte_fallback=True, fuse_unk=True),
     bpe(450, ['<unk>', '<s>', '</s>'] + BYTES),
     normalizer=normalizers.Sequence([normalizers.Prepend('▁'), normalizers.Replace(' ', '▁')]),
     decoder=decoders.Sequence([decoders.Replace('▁', ' '), decoders.ByteFallback(), decoders.Fuse(),
                                decoders.Strip(' ', 1, 0)]),
     post=processors.TemplateProcessing(single='<s> $A </s>', special_tokens=[('<s>', 1), ('</s>', 2)]))
make('bert', models.WordPiece(unk_token='[UNK]'),
     trainers.WordPieceTrainer(vocab_size=400, special_tokens=['[PAD]', '[UNK]', '[CLS]', '[SEP]'],
                               show_progress=False),
     normalizer=normalizers.BertNormalizer(), splitter=pre_tokenizers.BertPreTokenizer(),
     decoder=decoders.WordPiece(), post=processors.BertProcessing(('[SEP]', 3), ('[CLS]', 2)))
make('unigram', models.Unigram(), trainers.UnigramTrainer(vocab_size=300, special_tokens=['<unk>', '<s>'],
                                                          unk_token='<unk>', show_progress=False),
     normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(' {2,}'), ' ')]),
     splitter=pre_tokenizers.Metaspace(), decoder=decoders.Metaspace())
make('words', models.WordLevel(unk_token='[UNK]'), trainers.WordLevelTrainer(
    vocab_size=300, special_tokens=['[UNK]'], show_progress=False),
     normalizer=normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents(),
                                      normalizers.Strip()]),
     splitter=pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)]))
make('suffix', models.BPE(unk_token='<unk>', end_of_word_suffix='</w>', continuing_subword_prefix='##'),
     bpe(400, ['<unk>'], end_of_word_suffix='</w>', continuing_subword_prefix='##'),
     normalizer=normalizers.Sequence([normalizers.NFC(), normalizers.Nmt()]),
     splitter=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                       pre_tokenizers.Punctuation('merged_with_previous')]),
     decoder=decoders.BPEDecoder())
for kind in ('bpe', 'unigram'):
    name = 'spm_' + kind
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(x for x in lines if x.strip()), model_prefix=out + '/' + name, vocab_size=450,
        model_type=kind, byte_fallback=kind == 'bpe', user_defined_symbols=['<sep>', 'foo'], minloglevel=2,
        character_coverage=0.995, hard_vocab_limit=False,
        normalization_rule_name='identity' if kind == 'bpe' else 'nmt_nfkc')
    made[name] = sentencepiece.SentencePieceProcessor(model_file='%s/%s.model' % (out, name))

TEXTS = ['', ' ', 'Hello world', "It's 12345 o'clock,  isn't IT?", '  two  spaces \n\n\ttab\r\n', 'foo <mask> food foo.',
         '<|endoftext|><s>[SEP]<|eot|><sep>', 'Größe naïve cafe\u0301 ﬁ ½ İ', '北京大学 はやい 안녕 Привет',
         '🙂👍🏽 \u200d \xa0\u3000x', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', '▁_<0x0A> ##ing the game was played in 1998 .']


def c(s):
    return '"%s"' % ''.join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else '\\%03o' % b for b in s.encode())


with open(out + '/tokenizer_cases.h', 'w') as f:
    f.write('// SPDX-License-Identifier: Apache-2.0\n// Written by tests/models/make_tokenizers.py: ids and decoded texts of '
            'tokenizers %s and sentencepiece %s.\n// "parse": special tokens in the text are parsed and those of the '
            'post-processor added.\n' % (tokenizers.__version__, sentencepiece.__version__))
    f.write('static const struct recorded {\n\tconst char *file, *text;\n\tbool parse;\n\tint count;\n'
            '\tint ids[110];\n\tconst char *decoded;\n} recorded[] = {\n')
    for name, t in made.items():
        for s in TEXTS:
            for parse in (0, 1):
                if isinstance(t, Tokenizer):
                    t.encode_special_tokens = not parse
                    ids = t.encode(s, add_special_tokens=bool(parse)).ids
                    text, file = t.decode(ids, skip_special_tokens=False), name + '.json'
                elif parse:
                    continue
                else:
                    ids = t.encode(s)
                    text, file = t.decode(ids), name + '.model'
                f.write('\t{ "%s", %s, %s, %d,\n\t  { %s },\n\t  %s },\n' % (
                    file, c(s), 'true' if parse else 'false', len(ids), ', '.join(map(str, ids)) or '0', c(text)))
    f.write('};\n')
