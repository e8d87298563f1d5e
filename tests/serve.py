# SPDX-License-Identifier: Apache-2.0
# Sends requests to yoke serve as clients do: serve.py PART URL ..
import base64, concurrent.futures, http.client, json, math, os, random, re, socket, struct, subprocess, sys, threading, time
from urllib.parse import urlsplit

def verdict(title, wrong):
    print('ok ' + title if not wrong else 'not ok %s\n# %s' % (title, str(wrong)[:1500]), flush=True)

part, url = sys.argv[1:3]
host, port = urlsplit(url).hostname, urlsplit(url).port
KEY = {}

def ask(path, body=None, method=None, headers={}, raw=None):
    c = http.client.HTTPConnection(host, port, timeout=600)
    data = raw if raw is not None else None if body is None else json.dumps(body).encode()
    c.request(method or ('GET' if data is None else 'POST'), path, data, {**KEY, **headers})
    r = c.getresponse()
    text = r.read()
    c.close()
    try:
        o = json.loads(text)
    except ValueError:
        o = text
    return r.status, o, r.headers

def complete(**body):
    status, o, _ = ask('/v1/completions', body)
    assert status == 200, o
    return o

def events(path, body, headers={}):
    c = http.client.HTTPConnection(host, port, timeout=600)
    c.request('POST', path, json.dumps({**body, 'stream': True}), {**KEY, **headers})
    r = c.getresponse()
    assert r.status == 200, r.read()
    assert r.headers['Content-Type'] == 'text/event-stream', r.headers
    lines = r.read().decode().split('\n\n')
    c.close()
    assert lines.pop() == '' and lines.pop() == 'data: [DONE]', lines[-3:]
    return [json.loads(l.removeprefix('data: ')) for l in lines]

# The reply that the chunks of a stream make up.
def joined(chunks, chat):
    choices = {}
    for o in chunks:
        for c in o['choices']:
            t = choices.setdefault(c['index'], {'text': '', 'finish_reason': None, 'entries': []})
            t['text'] += (c['delta'].get('content') or '') if chat else c['text']
            t['finish_reason'] = c['finish_reason'] or t['finish_reason']
            if c['logprobs']:
                t['entries'].append(c['logprobs'])
    for t in choices.values():
        if chat:
            t['entries'] = [e for l in t['entries'] for e in l['content']]
        else:
            t['entries'] = {k: sum((l[k] or [] for l in t['entries']), []) for k in
                            ('tokens', 'token_logprobs', 'top_logprobs', 'text_offset')} if t['entries'] else []
    return [choices[i] for i in sorted(choices)]

def whole(o, chat):
    def entries(l): # an empty text has no chunk with log-probabilities
        return l['content'] if chat else {k: v or [] for k, v in l.items()} if l['tokens'] else []
    return [{'text': c['message']['content'] if chat else c['text'], 'finish_reason': c['finish_reason'],
             'entries': entries(c['logprobs']) if c['logprobs'] else []} for c in o['choices']]

# The metrics once no page is used and only this request is in flight: a client may have its reply before the
# last step has ended and the request is counted.
def idle():
    until = time.time() + 600
    while ((s := samples())['yoke_pages{state="used"}'] > 0 or s['yoke_requests_in_flight'] > 1) and time.time() < until:
        time.sleep(0.02)
    return s

def samples():
    status, text, headers = ask('/metrics')
    assert status == 200 and 'version=0.0.4' in headers['Content-Type'], (status, headers)
    return {m[1]: float(m[2]) for m in re.finditer(r'^(yoke_\S+) (\S+)$', text.decode(), re.M)}

def message(o):
    e = o.get('error') if isinstance(o, dict) else None
    return e and set(e) == {'message', 'type', 'param', 'code'} and isinstance(e['message'], str) and e['message']

PROMPT = 'line 3 of a text'
CHAT = [{'role': 'system', 'content': 'be brief'}, {'role': 'user', 'content': 'line 2 of'}]

def test_endpoints(folder, yoke):
    status, o, _ = ask('/health')
    verdict('/health reports that the server is ready', not (status == 200 and o == {'status': 'ok'}) and (status, o))
    status, o, _ = ask('/v1/models')
    verdict('/v1/models lists the model, its adapter and the model of embeddings', None if status == 200 and [
        m['id'] for m in o['data']] == ['model', 'tuned', 'model'] and o['data'][0]['object'] == 'model' else o)
    o = complete(model='model', prompt=PROMPT, max_tokens=12, temperature=0)
    want = subprocess.run([yoke, 'generate', folder, 'prompt=' + PROMPT, 'tokens=12', 'temperature=0'], capture_output=True,
                          text=True).stdout
    verdict('/v1/completions continues a prompt as yoke generate does', None if o['object'] == 'text_completion' and
            o['choices'][0]['text'] and PROMPT + o['choices'][0]['text'].rstrip('\n') in want else (o, want))
    usage = o['usage']
    n = ask('/tokenize', {'content': PROMPT})[1]
    verdict('usage counts tokens as /tokenize does', None if usage['prompt_tokens'] == n['count'] == len(n['tokens']) and
            usage['completion_tokens'] == 12 and usage['total_tokens'] == n['count'] + 12 else (usage, n))
    status, o, _ = ask('/detokenize', {'tokens': n['tokens']})
    verdict('/detokenize is the inverse of /tokenize', None if o == {'content': PROMPT} else o)
    same = complete(prompt=n['tokens'], max_tokens=12, temperature=0)['choices'][0]['text']
    both = complete(prompt=[PROMPT, n['tokens']], max_tokens=12, temperature=0)['choices']
    verdict('prompts may be tokens, and several', None if [c['text'] for c in both] == [same] * 2 and
            [c['index'] for c in both] == [0, 1] else (same, both))
    status, o, _ = ask('/v1/chat/completions', {'model': 'model', 'messages': CHAT, 'max_tokens': 8, 'temperature': 0})
    text = 'system: be brief\nuser: line 2 of\nassistant: '
    plain = complete(prompt=text, max_tokens=8, temperature=0)['choices'][0]['text']
    verdict('/v1/chat/completions continues the text of the template', None if status == 200 and
            o['object'] == 'chat.completion' and o['choices'][0]['message']['content'] == plain and
            o['choices'][0]['message']['role'] == 'assistant' else (o, plain))
    parts = [CHAT[0], {'role': 'user', 'content': [{'type': 'text', 'text': 'line 2'}, {'type': 'text', 'text': ' of'}]}]
    got = ask('/v1/chat/completions', {'messages': parts, 'max_completion_tokens': 8, 'temperature': 0})[1]
    verdict('a message may have parts of text', None if got['choices'] == o['choices'] else (got, o))
    status, o, _ = ask('/v1/embeddings', {'model': 'model', 'input': ['line 3', 'of a text']})
    vectors = [d['embedding'] for d in o['data']]
    want = [json.loads(l)['vector'] for l in subprocess.run([yoke, 'embed', folder, 'line 3', 'of a text', 'format=json'],
                                                            capture_output=True, text=True).stdout.splitlines()]
    verdict('/v1/embeddings has the vectors of yoke embed', None if status == 200 and [d['index'] for d in o['data']] == [0, 1] and
            all(abs(a - b) < 1e-5 for v, w in zip(vectors, want) for a, b in zip(v, w)) and len(vectors) == len(want) == 2 and
            o['usage']['prompt_tokens'] > 2 else (o, want))
    packed = ask('/v1/embeddings', {'input': ['line 3', 'of a text'], 'encoding_format': 'base64'})[1]
    got = [list(struct.unpack('<%df' % len(vectors[0]), base64.b64decode(d['embedding']))) for d in packed['data']]
    verdict('encoding_format base64 has the same numbers', None if got == vectors else (got, vectors))
    ids = ask('/tokenize', {'content': 'line 3', 'add_special': True})[1]['tokens']
    one = ask('/v1/embeddings', {'input': ids})[1]['data'][0]['embedding']
    verdict('an input may be tokens', None if max(abs(a - b) for a, b in zip(one, vectors[0])) < 1e-4 else (one, vectors[0]))
    status, text, headers = ask('/')
    verdict('/ is a page whose policy allows its own script only', None if status == 200 and b'<title>yoke chat' in text and
            "script-src 'sha256-" in headers['Content-Security-Policy'] and "default-src 'none'" in
            headers['Content-Security-Policy'] else (status, headers))

def test_sampling():
    wrong = []
    for chat in (False, True):
        path = '/v1/chat/completions' if chat else '/v1/completions'
        base = {'messages': CHAT} if chat else {'prompt': PROMPT}
        for more in ({'temperature': 0}, {'seed': 5}, {'seed': 5, 'top_p': 0.5, 'top_k': 20, 'min_p': 0.01}, {'seed': 7, 'n': 3},
                     {'seed': 7, 'presence_penalty': 1, 'frequency_penalty': 0.5, 'repetition_penalty': 1.2},
                     {'temperature': 0, 'stop': 'text'}, {'seed': 1, 'n': 2, 'stop': ['e', ' t']},
                     {'seed': 4, 'stop': ['qqq', 'line 3']}, {'temperature': 0, 'top_p': 0}, {'seed': 3, 'ignore_eos': True},
                     {'seed': 9, 'temperature': 2, 'n': 8}):
            for logprobs in ({}, {'logprobs': True, 'top_logprobs': 3} if chat else {'logprobs': 3},
                             {'logprobs': True} if chat else {'logprobs': 0}):
                body = {**base, **more, **logprobs, 'max_tokens': 24}
                status, o, _ = ask(path, body)
                chunks = events(path, {**body, 'stream_options': {'include_usage': True}})
                a, b = whole(o, chat), joined(chunks, chat)
                if status != 200 or len(a) != more.get('n', 1) or a != b or chunks[-1]['usage']['total_tokens'] != o['usage']['total_tokens'] or \
                   chunks[-1]['choices'] or any(c['usage'] is not None for c in chunks[:-1]):
                    wrong.append((path, body, o, chunks[-1]))
    verdict('streams have the text, log-probabilities and usage of whole replies', wrong and (len(wrong), wrong[0]))
    a = complete(prompt=PROMPT, max_tokens=24, seed=3, temperature=1.5)['choices']
    b = complete(prompt=PROMPT, max_tokens=24, seed=2, temperature=1.5, n=2)['choices']
    verdict('choice i is drawn with the seed + i', None if a[0]['text'] == b[1]['text'] else (a, b))
    o = complete(prompt=PROMPT, max_tokens=24, temperature=0)['choices'][0]['text']
    wrong = []
    for at in range(len(o) - 1):
        for n in (1, 2, 5):
            stop = o[at:at + n]
            c = complete(prompt=PROMPT, max_tokens=24, temperature=0, stop=[stop, 'never'])['choices'][0]
            if c['text'] != o[:o.index(stop)] or c['finish_reason'] != 'stop':
                wrong.append((stop, c, o))
    verdict('the text ends before the first stop text, wherever tokens begin', wrong and wrong[0])
    c = complete(prompt=PROMPT, max_tokens=8, temperature=0, logprobs=5)['choices'][0]['logprobs']
    best = [max(t.values()) for t in c['top_logprobs']]
    total = [sum(math.exp(v) for v in t.values()) for t in c['top_logprobs']]
    verdict('greedy tokens have the largest log-probability', None if len(c['tokens']) == 8 and
            all(abs(a - b) < 1e-6 for a, b in zip(best, c['token_logprobs'])) and all(t <= 1.0001 for t in total) else c)
    id = ask('/tokenize', {'content': 'e'})[1]['tokens'][0]
    o = complete(prompt=PROMPT, max_tokens=5, temperature=0, logit_bias={str(id): 100})['choices'][0]['text']
    verdict('logit_bias decides', None if o == 'eeeee' else o)
    a = ask('/v1/completions', {'model': 'tuned', 'prompt': PROMPT, 'max_tokens': 24, 'temperature': 0, 'logprobs': 1})
    b = complete(prompt=PROMPT, max_tokens=24, temperature=0, logprobs=1)
    verdict('"model" chooses an adapter', None if a[0] == 200 and a[1]['model'] == 'tuned' and a[1]['choices'][0]['logprobs'] !=
            b['choices'][0]['logprobs'] else (a, b))

# Philox 4x32-10 (Salmon et al. 2011): the first two words of the block of a counter, low word first
def philox(key, counter):
    c, k, mask = [counter & 0xffffffff, counter >> 32, 0, 0], [key & 0xffffffff, key >> 32], 0xffffffff
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & mask, (p >> 32) ^ c[3] ^ k[1], p & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return c[0] | c[1] << 32

# top_k=20 leaves the tokens whose log-probabilities a reply has, so their choice can be computed from them.
def test_draws(folder, yoke):
    wrong, n = [], 0
    for i in range(12):
        t, p, m = (0.5, 1, 1.5, 2)[i % 4], (1, 0.7, 0.9)[i % 3], (0, 0.05)[i % 2]
        o = complete(prompt=PROMPT, max_tokens=24, seed=100 * i, temperature=t, top_k=20, top_p=p, min_p=m, logprobs=20, n=2)
        for choice in o['choices']:
            l = choice['logprobs']
            for k, top in enumerate(l['top_logprobs']):
                if len(top) < 20: # two tokens with the same text
                    continue
                ids = sorted(top, key=lambda x: -top[x])
                w = [math.exp((top[x] - top[ids[0]]) / t) for x in ids]
                keep = next(j + 1 for j in range(20) if sum(w[:j + 1]) >= p * sum(w) or j == 19)
                w = [x for x in w[:keep] if x >= m]
                u = (philox(100 * i + choice['index'], k) >> 11) / 2 ** 53 * sum(w)
                want = next(x for j, x in enumerate(ids) if u < sum(w[:j + 1]) or j == len(w) - 1)
                n += 1
                if l['tokens'][k] != want:
                    wrong.append((i, choice['index'], k, l['tokens'][k], want, top))
    verdict('%d tokens are those that Philox draws by (seed, index) from the reported probabilities' % n,
            (wrong or n < 100) and (n, wrong[:1]))
    wrong, same = [], 0
    for seed in range(20):
        text = complete(prompt=PROMPT, max_tokens=8, seed=seed, temperature=0.5, top_p=0.9)['choices'][0]['text']
        want = subprocess.run([yoke, 'generate', folder, 'prompt=' + PROMPT, 'tokens=8', 'temperature=0.5', 'top_p=0.9',
                               'seed=%d' % seed], capture_output=True).stdout
        if '\ufffd' not in text: # else bytes that are no characters
            same += 1
            if text.encode() not in want:
                wrong.append((seed, text, want))
    verdict('yoke generate draws the same text with the same seed, %d times' % same, (wrong or not same) and (same, wrong))

def test_echo():
    plain = complete(prompt=PROMPT, max_tokens=8, seed=3, n=2, logprobs=2)
    both = complete(prompt=PROMPT, max_tokens=8, seed=3, n=2, echo=True, best_of=2)
    verdict('with echo texts begin with the prompt', None if [c['text'] for c in both['choices']] ==
            [PROMPT + c['text'] for c in plain['choices']] and both['usage']['completion_tokens'] == 16 else (plain, both))
    ids = ask('/tokenize', {'content': PROMPT})[1]['tokens']
    for n in (1, 2):
        o = complete(prompt=PROMPT, max_tokens=8, seed=3, n=n, logprobs=2, echo=True, stop=['line'])
        wrong = []
        for c, p in zip(o['choices'], complete(prompt=PROMPT, max_tokens=8, seed=3, n=n, logprobs=2, stop=['line'])['choices']):
            l, q = c['logprobs'], p['logprobs']
            k = len(ids)
            if c['text'] != PROMPT + p['text'] or ''.join(l['tokens'][:k]) != PROMPT or l['token_logprobs'][0] is not None or \
               l['top_logprobs'][0] is not None or l['token_logprobs'][k:] != q['token_logprobs'] or l['tokens'][k:] != q['tokens'] or \
               l['text_offset'][:2] != [0, len(l['tokens'][0])]:
                wrong.append((l, q))
        verdict('and the log-probabilities of its tokens are before those of the others, n=%d' % n, wrong)
    o = complete(prompt=[PROMPT, ids], max_tokens=0, logprobs=1, echo=True)['choices']
    want = [complete(prompt=ids[:i], max_tokens=1, logprobs=20, temperature=0, logit_bias={str(ids[i]): 100})['choices'][0]['logprobs']
            for i in range(1, len(ids))]
    verdict('max_tokens 0 gives the prompt alone, whose log-probabilities are those of its tokens after shorter prompts', None if
            all(c['text'] == PROMPT and c['finish_reason'] == 'length' and c['logprobs']['token_logprobs'][1:] ==
                [w['token_logprobs'][0] for w in want] and len(c['logprobs']['tokens']) == len(ids) for c in o) else (o, want))
    body = {'prompt': PROMPT, 'max_tokens': 8, 'seed': 3, 'n': 2, 'logprobs': 2, 'echo': True}
    a, b = whole(complete(**body), False), joined(events('/v1/completions', body), False)
    verdict('with echo, streams have the text and log-probabilities of whole replies', None if a == b else (a, b))

def test_schemas():
    wrong = []
    for schema, good in (({'type': 'object', 'properties': {'a': {'type': 'integer'}, 'b': {'enum': ['x', 'y']}},
                           'required': ['a', 'b']}, lambda o: isinstance(o['a'], int) and o['b'] in 'xy'),
                         ({'type': 'array', 'items': {'type': 'boolean'}, 'minItems': 2, 'maxItems': 3},
                          lambda o: 2 <= len(o) <= 3 and all(isinstance(x, bool) for x in o))):
        for seed in range(5):
            status, o, _ = ask('/v1/chat/completions', {'messages': CHAT, 'seed': seed, 'n': 2, 'response_format': {
                'type': 'json_schema', 'json_schema': {'name': 'x', 'schema': schema}}})
            try:
                for c in o['choices']:
                    assert c['finish_reason'] == 'length' or good(json.loads(c['message']['content']))
            except (KeyError, ValueError, AssertionError):
                wrong.append((status, o))
    verdict('response_format json_schema restricts the text to values of the schema', wrong and wrong[0])
    status, o, _ = ask('/v1/chat/completions', {'messages': CHAT, 'seed': 1, 'max_tokens': 60, 'response_format': {'type': 'json_object'}})
    verdict('response_format json_object begins an object', None if status == 200 and
            o['choices'][0]['message']['content'].lstrip().startswith('{') else o)

def test_errors():
    deep = b'{"prompt":' + b'[' * 10000 + b']' * 10000 + b'}'
    long_text = 'line of a text ' * 400
    cases = [
        ('no JSON', '/v1/completions', b'{"prompt": ', 400, None, None),
        ('an empty body', '/v1/completions', b'', 400, None, None),
        ('NaN', '/v1/completions', b'{"prompt":"x","temperature":NaN}', 400, None, None),
        ('an infinite number', '/v1/completions', b'{"prompt":"x","temperature":1e999}', 400, None, None),
        ('a lone surrogate', '/v1/completions', b'{"prompt":"\\ud800"}', 400, None, None),
        ('a NUL', '/v1/completions', b'{"prompt":"a\\u0000b"}', 400, None, None),
        ('bytes that are no UTF-8', '/v1/completions', b'{"prompt":"\xff\xfe"}', 400, None, None),
        ('arrays 10,000 deep', '/v1/completions', deep, 400, None, None),
        ('an array', '/v1/completions', b'[]', 400, None, None),
        ('no prompt', '/v1/completions', {}, 400, 'prompt', None),
        ('an empty list of prompts', '/v1/completions', {'prompt': []}, 400, 'prompt', None),
        ('a prompt without tokens', '/v1/completions', {'prompt': ''}, 400, 'prompt', None),
        ('a prompt that is a number', '/v1/completions', {'prompt': 7}, 400, 'prompt', None),
        ('a token that the model lacks', '/v1/completions', {'prompt': [1, 10 ** 6]}, 400, 'prompt', None),
        ('a negative token', '/v1/completions', {'prompt': [-1]}, 400, 'prompt', None),
        ('a mixed list', '/v1/completions', {'prompt': ['a', 1]}, 400, 'prompt', None),
        ('a prompt beyond the context', '/v1/completions', {'prompt': long_text}, 400, 'prompt', 'context_length_exceeded'),
        ('messages beyond the context', '/v1/chat/completions', {'messages': [{'role': 'user', 'content': long_text}]}, 400,
         'messages', 'context_length_exceeded'),
        ('another model', '/v1/completions', {'model': 'gpt-4', 'prompt': 'x'}, 404, 'model', 'model_not_found'),
        ('a model that is a number', '/v1/completions', {'model': 4, 'prompt': 'x'}, 400, 'model', None),
        ('temperature=3', '/v1/completions', {'prompt': 'x', 'temperature': 3}, 400, 'temperature', None),
        ('temperature that is a text', '/v1/completions', {'prompt': 'x', 'temperature': '1'}, 400, 'temperature', None),
        ('top_p=2', '/v1/completions', {'prompt': 'x', 'top_p': 2}, 400, 'top_p', None),
        ('n=9', '/v1/completions', {'prompt': 'x', 'n': 9}, 400, 'n', None),
        ('n=0', '/v1/completions', {'prompt': 'x', 'n': 0}, 400, 'n', None),
        ('n=1.5', '/v1/completions', {'prompt': 'x', 'n': 1.5}, 400, 'n', None),
        ('max_tokens=0', '/v1/completions', {'prompt': 'x', 'max_tokens': 0}, 400, 'max_tokens', None),
        ('max_tokens=-1', '/v1/completions', {'prompt': 'x', 'max_tokens': -1}, 400, 'max_tokens', None),
        ('logprobs=21', '/v1/completions', {'prompt': 'x', 'logprobs': 21}, 400, 'logprobs', None),
        ('top_logprobs=21', '/v1/chat/completions', {'messages': CHAT, 'logprobs': True, 'top_logprobs': 21}, 400, 'top_logprobs', None),
        ('top_logprobs without logprobs', '/v1/chat/completions', {'messages': CHAT, 'top_logprobs': 2}, 400, 'top_logprobs', None),
        ('17 stop texts', '/v1/completions', {'prompt': 'x', 'stop': ['s%d' % i for i in range(17)]}, 400, 'stop', None),
        ('an empty stop text', '/v1/completions', {'prompt': 'x', 'stop': ''}, 400, 'stop', None),
        ('a stop that is a number', '/v1/completions', {'prompt': 'x', 'stop': [1]}, 400, 'stop', None),
        ('a bias of no token', '/v1/completions', {'prompt': 'x', 'logit_bias': {'x': 1}}, 400, 'logit_bias', None),
        ('a bias of 101', '/v1/completions', {'prompt': 'x', 'logit_bias': {'1': 101}}, 400, 'logit_bias', None),
        ('stream that is a text', '/v1/completions', {'prompt': 'x', 'stream': 'yes'}, 400, 'stream', None),
        ('stream_options without stream', '/v1/completions', {'prompt': 'x', 'stream_options': {}}, 400, 'stream_options', None),
        ('suffix', '/v1/completions', {'prompt': 'x', 'suffix': 'y'}, 400, 'suffix', 'unsupported_parameter'),
        ('best_of', '/v1/completions', {'prompt': 'x', 'best_of': 3}, 400, 'best_of', 'unsupported_parameter'),
        ('tools', '/v1/chat/completions', {'messages': CHAT, 'tools': [{}]}, 400, 'tools', 'unsupported_parameter'),
        ('no messages', '/v1/chat/completions', {}, 400, 'messages', None),
        ('empty messages', '/v1/chat/completions', {'messages': []}, 400, 'messages', None),
        ('an unknown role', '/v1/chat/completions', {'messages': [{'role': 'boss', 'content': 'x'}]}, 400, 'messages', None),
        ('a message without content', '/v1/chat/completions', {'messages': [{'role': 'user'}]}, 400, 'messages', None),
        ('a message that is a text', '/v1/chat/completions', {'messages': ['x']}, 400, 'messages', None),
        ('a picture', '/v1/chat/completions', {'messages': [{'role': 'user', 'content': [{'type': 'image_url', 'image_url': {'url': 'x'}}]}]},
         400, 'messages', None),
        ('an unknown response_format', '/v1/chat/completions', {'messages': CHAT, 'response_format': {'type': 'xml'}}, 400,
         'response_format', None),
        ('a schema that loops', '/v1/chat/completions', {'messages': CHAT, 'response_format': {
            'type': 'json_schema', 'json_schema': {'name': 'x', 'schema': {'$ref': '#'}}}}, 400, 'response_format', None),
        ('embeddings of nothing', '/v1/embeddings', {}, 400, 'input', None),
        ('embeddings of an empty text', '/v1/embeddings', {'input': ['a', '']}, 400, 'input', None),
        ('embeddings beyond the context', '/v1/embeddings', {'input': long_text}, 400, 'input', 'context_length_exceeded'),
        ('shorter vectors', '/v1/embeddings', {'input': 'x', 'dimensions': 2}, 400, 'dimensions', 'unsupported_parameter'),
        ('an unknown encoding', '/v1/embeddings', {'input': 'x', 'encoding_format': 'hex'}, 400, 'encoding_format', None),
        ('embeddings of an adapter', '/v1/embeddings', {'input': 'x', 'model': 'tuned'}, 404, 'model', 'model_not_found'),
        ('tokenize without text', '/tokenize', {}, 400, 'content', None),
        ('detokenize without tokens', '/detokenize', {}, 400, 'tokens', None),
        ('detokenize of no token', '/detokenize', {'tokens': [10 ** 7]}, 400, 'tokens', None),
        ('a body beyond the limit', '/v1/completions', b' ' * (5 << 20), 413, None, None),
        ('another path', '/v1/other', {}, 404, None, 'unknown_url'),
    ]
    wrong = []
    for title, path, body, status, param, code in cases:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        got = ask(path, raw=raw)
        e = got[1].get('error', {}) if isinstance(got[1], dict) else {}
        if got[0] != status or not message(got[1]) or e['param'] != param or e['code'] != code:
            wrong.append((title, got[0], got[1]))
    verdict('%d bad requests get an error object with status, param and code' % len(cases), wrong and (len(wrong), wrong[0]))
    n = [int(x) for x in re.findall(r'\d+', ask('/v1/completions', {'prompt': long_text})[1]['error']['message'])]
    verdict('a prompt beyond the context is reported with both numbers', None if len(n) == 2 and n[0] > n[1] == 256 else n)
    wrong = []
    for path, method in (('/v1/completions', 'GET'), ('/v1/models', 'POST'), ('/metrics', 'DELETE'), ('/v1/embeddings', 'PUT')):
        status, o, headers = ask(path, method=method, raw=b'')
        if status != 405 or not message(o) or not headers['Allow']:
            wrong.append((path, method, status, o))
    verdict('other methods get 405 with Allow', wrong)
    status, o, _ = ask('/v1/completions', {'prompt': 'x', 'unknown': [1], 'user': 'me', 'max_tokens': 1, 'temperature': None})
    verdict('unknown members and null are ignored', None if status == 200 else o)

def exchange(data, n=1 << 20):
    s = socket.create_connection((host, port), timeout=600)
    s.sendall(data)
    got = b''
    while len(got) < n:
        more = s.recv(65536)
        if not more:
            break
        got += more
    s.close()
    return got

def test_connections():
    before = samples()
    half = socket.create_connection((host, port))
    half.sendall(b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"pro')
    slow = socket.create_connection((host, port))
    slow.sendall(b'GET /health HTTP/1.1\r\nHo')
    o = complete(prompt=PROMPT, max_tokens=4, temperature=0)
    verdict('half a request and slow headers do not disturb others', None if len(o['choices']) == 1 else o)
    half.close()
    slow.close()
    got = exchange(b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n'
                   b'10\r\n{"prompt":"line"\r\n11\r\n,"max_tokens": 2}\r\n0\r\n\r\n')
    verdict('a body may come in chunks', None if b' 200 ' in got[:20] else got)
    got = exchange(b'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    verdict('requests may be pipelined', None if got.count(b'HTTP/1.1 200') == 2 else got)
    got = exchange(b'GET /v1/models HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n')
    verdict('another host name is refused without a key', None if b' 403 ' in got[:20] and b'"error"' in got else got)
    status, o, headers = ask('/v1/completions', {'prompt': 'x', 'max_tokens': 1}, headers={'Origin': 'http://evil.example'})
    verdict('pages of other sites are refused without a key', None if status == 403 and message(o) and
            not headers['Access-Control-Allow-Origin'] else (status, o))
    status, o, _ = ask('/v1/completions', {'prompt': 'x', 'max_tokens': 1}, headers={'Origin': url})
    verdict("a request from the server's own page is accepted", None if status == 200 else o)
    status, o, _ = ask('/v1/completions', method='OPTIONS', headers={'Origin': 'http://evil.example'})
    verdict('a CORS preflight request from another site is refused without a key', None if status == 403 else (status, o))
    got = exchange(b'nonsense\r\n\r\n')
    verdict('what is not HTTP ends its connection only', None if ask('/health')[0] == 200 else got)

# A server that waits a second for headers and bodies.
def test_slow():
    wrong = []
    for data in (b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"pro',
                 b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{"prompt":',
                 b'GET /health HTTP/1.1\r\nHo', b'GET /hea'):
        got = exchange(data)
        head, _, body = got.partition(b'\r\n\r\n')
        try:
            e = json.loads(body)
        except ValueError:
            e = {}
        if not head.startswith(b'HTTP/1.1 408 ') or not message(e) or e['error']['code'] != 'timeout' or b'Connection: close' not in head:
            wrong.append((data, got))
    verdict('half a body, half of a chunk, half a header and half a line get 408, and the connection is closed', wrong)
    got = exchange(b'')
    verdict('an idle connection is closed without a reply', got)
    until, counted = time.time() + 600, b'yoke_requests_total{endpoint="/v1/completions",code="408"} 2'
    while counted not in (o := ask('/metrics')[1]) and time.time() < until:
        time.sleep(0.02)
    verdict('late requests are counted', None if counted in o else o)

# The computing thread never returns from a step: slots=1 queue=2 timeout=3.
def test_stuck():
    c = http.client.HTTPConnection(host, port, timeout=600)
    c.request('POST', '/v1/completions', json.dumps({'prompt': 'line', 'max_tokens': 200, 'ignore_eos': True, 'stream': True}))
    lines = c.getresponse().read().decode().split('\n\n')
    last = json.loads(lines[-2].removeprefix('data: '))
    verdict('a stream whose time is over ends with an error', None if message(last) and last['error']['code'] == 'timeout' else lines[-3:])
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda i: ask('/v1/completions', {'prompt': 'line %d' % i, 'max_tokens': 2}), range(4)))
    codes = sorted(g[0] for g in got)
    verdict('during a step that does not end two requests wait and get 504, others 429 with Retry-After', None if
            codes == [429, 429, 504, 504] and all(message(g[1]) for g in got) and
            all(g[2]['Retry-After'] for g in got if g[0] == 429) else got)
    verdict('health and metrics are served meanwhile', None if ask('/health')[0] == ask('/metrics')[0] == 200 else ask('/health'))

def test_draining():
    until = time.time() + 600
    while ask('/v1/models')[0] != 503 and time.time() < until:
        pass
    status, o, h = ask('/v1/completions', {'prompt': 'line', 'max_tokens': 2})
    verdict('after SIGTERM requests get 503 during a step that does not end', None if status == 503 and message(o) and h['Retry-After']
            else (status, o))

# Requests of several clients; their replies are those in the file, or become it.
def test_replies(file):
    bodies = [{'prompt': 'line %d of' % i, 'max_tokens': 12 + i, 'seed': i, 'temperature': i % 3 / 2, 'logprobs': 2, 'n': 1 + i % 2}
              for i in range(10)]
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        got = list(pool.map(lambda b: ask('/v1/completions', b), bodies))
    bad = [g[:2] for g in got if g[0] != 200]
    replies = [whole(g[1], False) for g in got] if not bad else bad
    if not os.path.exists(file):
        json.dump(replies, open(file, 'w'))
    want = json.load(open(file))
    s = idle()
    verdict('replies have the bits of a device without faults, and no page is used', None if replies == want and
            s['yoke_pages{state="used"}'] == 0 else [(a, b) for a, b in zip(replies, want) if a != b][:1] or s)

def test_broken():
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        got = list(pool.map(lambda i: ask('/v1/completions', {'prompt': 'line %d' % i, 'max_tokens': 200, 'ignore_eos': True}), range(20)))
    good = [g for g in got if g[0] == 200]
    failed = [g for g in got if g[0] == 500 and message(g[1])]
    s = idle()
    verdict('on a device whose launches all fail from some time on requests get error objects, and no page is used',
            None if failed and len(good) + len(failed) == 20 and s['yoke_pages{state="used"}'] == 0 and
            ask('/health')[0] == 200 else (got[-1], s))

# A client that reads the first event, or nothing, and hangs up.
def hang_up(body, reads):
    s = socket.create_connection((host, port), timeout=600)
    data = json.dumps({**body, 'stream': bool(reads)}).encode()
    s.sendall(b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n' % len(data) + data)
    if reads:
        s.recv(100)
    s.close()

def test_company(clients, requests):
    r = random.Random(int(os.environ.get('YOKE_TEST_SEED', '1')))
    text = open('text').read()
    bodies = []
    for i in range(clients * requests):
        at = r.randrange(len(text) - 300)
        bodies.append({'prompt': text[at:at + r.randrange(1, 200)], 'max_tokens': r.randrange(1, 40), 'seed': i,
                       'temperature': r.choice([0, 0.7, 1.3]), 'top_p': r.choice([1, 0.9]), 'logprobs': r.choice([None, 0, 3]),
                       'n': r.choice([1, 1, 1, 2])})
    kind = [r.choice(['whole', 'stream', 'gone']) for _ in bodies]
    alone = [whole(complete(**b), False) if k != 'gone' else None for b, k in zip(bodies, kind)]
    before = idle()
    def run(i):
        if kind[i] == 'gone':
            return hang_up(bodies[i], i % 2)
        if kind[i] == 'stream':
            return joined(events('/v1/completions', bodies[i]), False)
        return whole(complete(**bodies[i]), False)
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        got = list(pool.map(run, range(len(bodies))))
    wrong = [i for i in range(len(bodies)) if got[i] != alone[i]]
    verdict('%d clients get the bits of each request alone, a third of them hangs up' % clients,
            wrong and (len(wrong), kind[wrong[0]], bodies[wrong[0]], got[wrong[0]], alone[wrong[0]]))
    name = 'yoke_requests_total{endpoint="/v1/completions",code="%d"}'
    count = lambda code: s.get(name % code, 0) - before.get(name % code, 0)
    until = time.time() + 600
    while time.time() < until:
        s = samples()
        if s['yoke_running'] == s['yoke_queued'] == s['yoke_pages{state="used"}'] == 0 and count(200) + count(499) == len(bodies):
            break
        time.sleep(0.02)
    verdict('no page is used when all requests have ended', None if s['yoke_running'] == s['yoke_queued'] ==
            s['yoke_pages{state="used"}'] == 0 else s)
    done, gone = count(200), count(499)
    verdict('metrics count each request: %d answered, %d gone' % (done, gone), None if done + gone == len(bodies) and
            done >= len(bodies) - kind.count('gone') and s['yoke_ttft_seconds_count'] > 0 and s['yoke_step_tokens_count'] > 0
            else (done, gone, len(bodies)))

def test_key(key):
    wrong = []
    for headers, want in (({}, 401), ({'Authorization': 'Bearer ' + key[:-1]}, 401), ({'Authorization': 'Bearer ' + key + 'x'}, 401),
                          ({'Authorization': 'Basic ' + key}, 401), ({'Authorization': 'Bearer '}, 401), ({'Authorization': key}, 401),
                          ({'Authorization': 'Bearer ' + key}, 200), ({'Authorization': 'bearer ' + key}, 200)):
        for path in ('/v1/models', '/metrics'):
            status, o, h = ask(path, headers=headers)
            if status != want or (want == 401 and not (message(o) and o['error']['code'] == 'invalid_api_key' and h['WWW-Authenticate'])):
                wrong.append((headers, path, status, o))
    verdict('requests with no key, a prefix, a suffix or another scheme get 401', wrong)
    verdict('/health and the page need none', None if ask('/health')[0] == ask('/')[0] == 200 else ask('/health'))
    KEY['Authorization'] = 'Bearer ' + key
    status, o, h = ask('/v1/models', headers={'Origin': 'http://other.example'})
    verdict('pages of other sites may use the key', None if status == 200 and h['Access-Control-Allow-Origin'] == 'http://other.example'
            else (status, o))
    c = http.client.HTTPConnection(host, port, timeout=600)
    c.request('OPTIONS', '/v1/chat/completions', headers={'Origin': 'http://other.example'})
    r = c.getresponse()
    verdict('a CORS preflight request lists the Authorization header', None if r.status == 204 and 'Authorization' in r.headers['Access-Control-Allow-Headers'] else r.status)
    c.close()
    status, o, _ = ask('/v1/models', headers={'Host': 'some.name'})
    verdict('with a key the host name does not matter', None if status == 200 else (status, o))

# Of 24 requests at once to a full queue, some are refused.
def refuses(what, path, body):
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        full = list(pool.map(lambda i: ask(path, {**body, 'user': str(i)}), range(24)))
    refused = [f for f in full if f[0] == 429]
    verdict(f'a full queue refuses {what} with 429 and Retry-After, and others are answered', None if refused and
            len(refused) < 24 and all(message(o) and h['Retry-After'] for _, o, h in refused) and
            all(f[0] in (200, 429) for f in full) else [f[:2] for f in full])

# slots=4 queue=1: four texts are running and one waits.
def test_queue():
    got = [ask('/v1/completions', {'prompt': ['line'] * n, 'max_tokens': 2})[0] for n in (5, 6, 5)]
    verdict('prompts for which slots are free do not count against the queue', None if got == [200, 429, 200] else got)
    refuses('requests', '/v1/completions', {'prompt': 'line', 'max_tokens': 200, 'ignore_eos': True, 'temperature': 1.5})
    refuses('embeddings', '/v1/embeddings', {'input': ['line of a text that is easy to learn ' * 5] * 200})

# A stream is being read when the server is told to end: the stream is complete, and further requests are refused.
def test_drain(pid, requests):
    c = http.client.HTTPConnection(host, port, timeout=600)
    c.request('POST', '/v1/completions', json.dumps({'prompt': 'line', 'max_tokens': 200, 'ignore_eos': True, 'stream': True}))
    r = c.getresponse()
    first = r.readline()
    os.kill(pid, 15)
    late, until = None, time.time() + 600
    try:
        while time.time() < until:
            late = ask('/v1/models')
            if late[0] != 200:
                break
    except OSError:
        late = (0, None)
    rest = r.read()
    verdict('SIGTERM lets a stream end', None if first.startswith(b'data: ') and rest.endswith(b'data: [DONE]\n\n') else rest[-300:])
    verdict('and refuses further requests', None if late[0] in (0, 503) else late)

if part == 'all':
    test_endpoints(*sys.argv[3:5])
    test_sampling()
    test_draws(*sys.argv[3:5])
    test_echo()
    test_schemas()
    test_errors()
    test_connections()
    test_company(8, int(sys.argv[5]))
elif part == 'key':
    test_key(sys.argv[3])
elif part == 'queue':
    test_queue()
elif part == 'drain':
    test_drain(int(sys.argv[3]), 4)
elif part == 'slow':
    test_slow()
elif part == 'stuck':
    test_stuck()
elif part == 'draining':
    test_draining()
elif part == 'replies':
    test_replies(sys.argv[3])
elif part == 'broken':
    test_broken()
