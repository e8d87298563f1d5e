# SPDX-License-Identifier: Apache-2.0
# Uses yoke serve through clients that people have: serve_clients.py URL QUEUE_URL, with openai, langchain-openai and
# prometheus_client where they are installed, and a browser.  QUEUE_URL: a server with slots=1 queue=1.
import asyncio, concurrent.futures, sys, urllib.request
import openai

def verdict(title, wrong):
    print('ok ' + title if not wrong else 'not ok %s\n# %s' % (title, str(wrong)[:1500]), flush=True)

url, queue_url = sys.argv[1:3]
client = openai.OpenAI(base_url=url + '/v1', api_key='none', timeout=600, max_retries=0)
messages = [{'role': 'system', 'content': 'be brief'}, {'role': 'user', 'content': 'line 2 of'}]
plain = dict(model='model', messages=messages, max_tokens=12, temperature=0)

verdict('models', None if [m.id for m in client.models.list()][0] == 'model' else client.models.list())
whole = client.chat.completions.create(**plain, logprobs=True, top_logprobs=2)
text = whole.choices[0].message.content
verdict('a chat', None if text and whole.choices[0].finish_reason == 'length' and whole.usage.completion_tokens == 12 and
        len(whole.choices[0].logprobs.content) == 12 and len(whole.choices[0].logprobs.content[0].top_logprobs) == 2 else whole)
parts = list(client.chat.completions.create(**plain, stream=True, stream_options={'include_usage': True}))
verdict('a stream', None if ''.join(p.choices[0].delta.content or '' for p in parts if p.choices) == text and
        parts[-1].usage.total_tokens == whole.usage.total_tokens else parts[-2:])
o = client.completions.create(model='model', prompt=['line 3', 'line 4'], max_tokens=5, n=2, seed=1, logprobs=2)
verdict('completions', None if [c.index for c in o.choices] == [0, 1, 2, 3] and len(o.choices[0].logprobs.tokens) == 5 else o)
o = client.embeddings.create(model='model', input=['line 3', 'of a text'])
one = client.embeddings.create(model='model', input='line 3', encoding_format='float')
verdict('embeddings', None if len(o.data) == 2 and max(abs(a - b) for a, b in zip(o.data[0].embedding, one.data[0].embedding)) < 1e-5
        else o)

async def many():
    c = openai.AsyncOpenAI(base_url=url + '/v1', api_key='none', timeout=600)
    one = [c.chat.completions.create(**plain) for _ in range(8)]
    return [r.choices[0].message.content for r in await asyncio.gather(*one)]
got = asyncio.run(many())
verdict('8 chats at once, asynchronously', None if got == [text] * 8 else got)

wrong = []
for error, call in ((openai.NotFoundError, lambda: client.chat.completions.create(model='gpt-4', messages=messages)),
                    (openai.BadRequestError, lambda: client.chat.completions.create(model='model', messages=[])),
                    (openai.BadRequestError, lambda: client.completions.create(model='model', prompt='x', temperature=3)),
                    (openai.BadRequestError, lambda: client.completions.create(model='model', prompt='line ' * 2000))):
    try:
        wrong.append(call())
    except error as e:
        if not e.body or not e.body.get('message'):
            wrong.append(e)
verdict('errors are those of the client', wrong)

# Each client sends again after Retry-After.
busy = openai.OpenAI(base_url=queue_url + '/v1', api_key='none', timeout=600, max_retries=100)
with concurrent.futures.ThreadPoolExecutor(6) as pool:
    got = list(pool.map(lambda i: busy.completions.create(model='model', prompt='line', max_tokens=100, seed=i,
                                                          extra_body={'ignore_eos': True}).usage.completion_tokens, range(12)))
verdict('requests that a full queue refuses are sent again', None if got == [100] * 12 else got)

try:
    o = client.chat.completions.create(model='model', messages=messages, seed=1, response_format={'type': 'json_schema', 'json_schema': {
        'name': 'x', 'schema': {'type': 'object', 'properties': {'number': {'type': 'integer'}}, 'required': ['number'],
                                'additionalProperties': False}}})
    import json
    verdict('a schema', None if o.choices[0].finish_reason == 'length' or
            isinstance(json.loads(o.choices[0].message.content)['number'], int) else o)
except Exception as e:
    verdict('a schema', e)

try:
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings
    chat = ChatOpenAI(model='model', base_url=url + '/v1', api_key='none', temperature=0, max_tokens=12)
    said = chat.invoke([('system', 'be brief'), ('user', 'line 2 of')]).content
    streamed = ''.join(c.content for c in chat.stream([('system', 'be brief'), ('user', 'line 2 of')]))
    verdict('langchain: a chat and a stream', None if said == streamed == text else (said, streamed, text))
    v = OpenAIEmbeddings(model='model', base_url=url + '/v1', api_key='none', check_embedding_ctx_length=False).embed_query('line 3')
    verdict('langchain: embeddings', None if max(abs(a - b) for a, b in zip(v, one.data[0].embedding)) < 1e-5 else v[:3])
except ImportError:
    print('# langchain-openai is not installed')

try:
    from prometheus_client.parser import text_string_to_metric_families as parse
    families = {f.name: f for f in parse(urllib.request.urlopen(url + '/metrics').read().decode())}
    total = sum(s.value for s in families['yoke_requests'].samples if s.labels.get('code') == '200')
    want = {'yoke_requests': 'counter', 'yoke_tokens': 'counter', 'yoke_running': 'gauge', 'yoke_queued': 'gauge', 'yoke_requests_in_flight': 'gauge', 'yoke_pages': 'gauge',
            'yoke_ttft_seconds': 'histogram', 'yoke_token_seconds': 'histogram', 'yoke_step_tokens': 'histogram'}
    verdict('prometheus_client reads the metrics', None if total > 10 and all(families[n].type == t for n, t in want.items())
            else families)
except ImportError:
    print('# prometheus_client is not installed')

# ---- the chat page in a browser ----

import browser
b = browser.start()
if not b:
    print('ok the chat page in a browser # SKIP there is none')
    sys.exit(0)
try:
    b.go(url + '/')
    verdict('the page has the models', None if b.wait("document.querySelector('#model').value") == 'model' else b.run('return document.body.innerText'))
    ask = """for (const [id, value] of Object.entries(arguments[0]))
            document.getElementById(id).value = value;
        document.querySelector('#form').requestSubmit();"""
    b.run(ask, {'system': 'be brief', 'temperature': '0', 'tokens': '12', 'text': 'line 2 of'})
    b.wait("document.querySelector('#stats').textContent && document.querySelector('#stop').hidden")
    answers = "return [...document.querySelectorAll('.assistant')].map(e => e.textContent)"
    verdict('it shows the answer that the client got', None if b.run(answers) == [text] else (b.run(answers), text))
    errors = [e['message'] for e in b.log('browser') if e['level'] == 'SEVERE']
    verdict('the console has no error', '\n'.join(errors))
    b.run(ask, {'temperature': '5', 'text': 'again'})
    refused = b.wait("document.querySelector('#error').textContent")
    verdict("it shows the server's errors: %s" % refused, None if refused and 'temperature' in refused and b.run(answers) == [text] else refused)
    b.run("document.querySelector('#reset').click()")
    verdict('a new conversation is empty', b.run(answers))
    elsewhere = [u for u in b.asked() if not u.startswith(url + '/')]
    verdict('nothing is asked for elsewhere', '\n'.join(elsewhere))
finally:
    b.close()
