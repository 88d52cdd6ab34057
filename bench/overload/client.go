package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// load sends chats.
type load struct {
	server *server
	http   *http.Client
	text   string
	sent   atomic.Int64
}

func newLoad(s *server, body int) *load {
	transport := &http.Transport{MaxIdleConnsPerHost: 4096, DialContext: (&net.Dialer{}).DialContext}
	words := strings.Repeat("The quick brown fox considers what the lazy dog might have answered. ", body/70+1)
	return &load{server: s, http: &http.Client{Transport: transport}, text: words[:body]}
}

// chat is one that was sent.
type chat struct {
	tenant, session, mark string
	status                int // of HTTP; 0: no reply
	kept                  bool
	took                  time.Duration
}

// perSession is how many chats a session has.
const perSession = 8

// send sends a chat, of a session that has a few of them.
func (l *load) send(ctx context.Context, tenant string) chat {
	n := l.sent.Add(1)
	// Chats of a session follow one another at some distance.
	c := chat{tenant: tenant, session: fmt.Sprintf("s-%d", n/(500*perSession)*500+n%500), mark: fmt.Sprintf("mark-%d-", n)}
	body := fmt.Sprintf(`{"model":"a/b","stream":true,"sessionId":"%s","messages":[{"role":"user","content":"%s %s"}]}`, c.session, c.mark, l.text)
	began := time.Now()
	reply, err := l.do(ctx, "POST", "/chat/completions", tenant, strings.NewReader(body))
	if err != nil {
		c.took = time.Since(began)
		return c
	}
	defer reply.Body.Close()
	c.status = reply.StatusCode
	saved, done := true, false
	for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
		saved = saved && lines.Text() != ": backstory not-saved"
		done = done || lines.Text() == "data: [DONE]"
	}
	c.kept = c.status == http.StatusOK && saved && done
	c.took = time.Since(began)
	return c
}

func (l *load) do(ctx context.Context, method, path, tenant string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, l.server.url+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("serviceKey", tenant+l.server.secret)
	r.Header.Set("Authorization", "Bearer sk-overload")
	r.Header.Set("Content-Type", "application/json")
	return l.http.Do(r)
}

// found counts the chats that the store has.
func (l *load) found(ctx context.Context, chats []chat) (n int, err error) {
	sessions := map[[2]string]string{}
	for _, c := range chats {
		key := [2]string{c.tenant, c.session}
		if _, read := sessions[key]; !read {
			if sessions[key], err = l.messages(ctx, c); err != nil {
				return n, err
			}
		}
		if strings.Contains(sessions[key], c.mark) {
			n++
		}
	}
	return n, nil
}

// messages are those of a chat's session, as a client may read them.
func (l *load) messages(ctx context.Context, c chat) (string, error) {
	reply, err := l.do(ctx, "GET", "/sessions/"+url.PathEscape(c.session)+"/messages?limit=100", c.tenant, nil)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if reply.StatusCode != http.StatusOK && reply.StatusCode != http.StatusNotFound {
		return "", fmt.Errorf("session %s: %s", c.session, reply.Status)
	}
	return string(text), err
}

// The router's pace: that of a quick model.
const (
	firstToken = 200 * time.Millisecond
	perToken   = 15 * time.Millisecond
	answer     = 20 // tokens
)

// newRouter starts the router.
func newRouter() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"data":[{"id":"a/b","context_length":128000}]}`)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(firstToken)
		w.Header().Set("Content-Type", "text/event-stream")
		for range answer {
			_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"word "}}]}`+"\n\n")
			w.(http.Flusher).Flush()
			time.Sleep(perToken)
		}
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
}
