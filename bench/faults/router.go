package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"
)

// router is the model router. Its reply to a message is "re " and the message's
// first word, as the client said it.
type router struct {
	*httptest.Server
	calls  atomic.Int64
	breaks atomic.Bool // every second reply breaks off
}

func newRouter() *router {
	r := &router{}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	return r
}

func (r *router) serve(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"trial/echo","object":"model","context_length":32000}]}`)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	n := r.calls.Add(1)
	last := gjson.GetBytes(body, "messages.@reverse.0.content").Str
	name := last[strings.LastIndexByte(last, '\n')+1:] // quotes come before what was said
	name, _, _ = strings.Cut(name, " ")
	words := strings.SplitAfter("re "+name+" and so it goes on for a while", " ")
	broken := r.breaks.Load() && n%2 == 0
	if gjson.GetBytes(body, "stream").Bool() {
		w.Header().Set("Content-Type", "text/event-stream")
		for i, word := range words {
			if broken && i == len(words)/2 {
				panic(http.ErrAbortHandler)
			}
			fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"trial/echo\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", word)
			_ = http.NewResponseController(w).Flush()
			pause(req, 2*time.Millisecond)
		}
		fmt.Fprint(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"trial/echo\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		return
	}
	pause(req, 10*time.Millisecond)
	reply := fmt.Sprintf(`{"id":"c","object":"chat.completion","model":"trial/echo","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}}`, strings.Join(words, ""))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(reply)))
	if broken {
		fmt.Fprint(w, reply[:len(reply)/2])
		panic(http.ErrAbortHandler)
	}
	fmt.Fprint(w, reply)
}

// pause lets the model think.
func pause(req *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-req.Context().Done():
	}
}
