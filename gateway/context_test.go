package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/tokens"
)

// heavy is a router whose model takes half as many tokens again as o200k_base
// counts, has a context of 4,000, and refuses what exceeds it.
func heavy(t *testing.T) *fake {
	upstream := newFake(t)
	upstream.other = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[{"id":"acme/heavy-1","context_length":4000}]}`)
	}
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, body string) {
		n := 3
		gjson.Get(body, "messages").ForEach(func(_, m gjson.Result) bool {
			n += 4 + tokens.O200K().Count(m.Get("content").String())
			return true
		})
		n = n * 3 / 2
		w.Header().Set("Content-Type", "application/json")
		if n+500 > 4000 {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"too long","code":"context_length_exceeded"}}`)
			return
		}
		if gjson.Get(body, "stream").Bool() {
			writeEvents(w, delta("ok"), finished, fmt.Sprintf(`data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":1}}`, n)+"\n\n", done)
			return
		}
		_, _ = io.WriteString(w, withUsage(fmt.Sprint(n), "1"))
	})
	return upstream
}

func TestWhatTheRouterBillsCorrectsTheEstimates(t *testing.T) {
	t.Parallel()
	for name, extra := range map[string]string{"JSON": "", "a stream": `,"stream":true`} {
		t.Run(name, func(t *testing.T) {
			s := start(t, options{upstream: heavy(t).URL})
			body := func(text string) string {
				return strings.Replace(chatBody(text, `"sessionId":"s","max_tokens":500`+extra), "demo/echo", "acme/heavy-1", 1)
			}
			text := strings.Repeat("The words that the tokenizer of this model cuts finer than others. ", 15)
			var last reply
			for i := range 30 { // each about 200 tokens: the session outgrows the context
				last = s.post(acme, "/chat/completions", body(text))
				if last.status != http.StatusOK {
					t.Fatalf("request %d: the prompt exceeds the model's context because of us: %s", i, last.body)
				}
			}
			meta := last.get("_metadata")
			if !meta.Exists() {
				meta = gjson.Get(strings.TrimPrefix(strings.SplitN(last.body, "\n", 2)[0], "data: "), "_metadata")
			}
			billed := gjson.Get(last.body[strings.Index(last.body, `"prompt_tokens":`)-1:], "prompt_tokens").Int()
			estimate := meta.Get("context.totalTokens").Int()
			if estimate < billed || estimate > billed*108/100 || !meta.Get("context.truncated").Bool() {
				t.Errorf("%d tokens were billed; metadata %s", billed, meta)
			}
			// The cut moves in quarters of the share that the request leaves.
			if estimate < 2200 {
				t.Errorf("only %d tokens of 3,500 are used", estimate)
			}
		})
	}
}
