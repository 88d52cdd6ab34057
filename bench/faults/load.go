package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"
)

// outcome is what a client knows of an exchange when its request has ended.
type outcome int

const (
	unknown      outcome = iota // it failed on the way: both are right, kept or not
	acknowledged                // its end was read: it must be kept, once
	told                        // answered, and said not to be saved: it must not be
	refused                     // 503, or not connected: the model should not have been called
	left                        // by the client itself, after the reply began
)

// said is one message of a session and what became of it.
type said struct {
	name    string
	outcome outcome
}

// session is one conversation. A client says one thing after the other in it.
type session struct {
	id   string
	said []said
}

// load is the clients that chat.
type load struct {
	site     *site
	sessions []*session
	http     *http.Client
	think    time.Duration // between a reply and the next request
	wrong    atomic.Int64  // replies that no client should get
	lastErr  atomic.Value  // of them: a string

	stop context.CancelFunc
	done sync.WaitGroup
}

// chat lets n clients chat, each in a session of its own, until halt is called.
func (s *site) chat(n int, round string, think time.Duration) *load {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{site: s, stop: stop, think: think, http: &http.Client{
		Timeout:   20 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: n},
	}}
	for i := range n {
		one := &session{id: fmt.Sprintf("%s/%d", round, i)}
		l.sessions = append(l.sessions, one)
		l.done.Go(func() { l.run(ctx, one, i) })
	}
	return l
}

// halt waits until all clients have ended what they were saying.
func (l *load) halt() {
	l.stop()
	l.done.Wait()
	l.http.CloseIdleConnections()
}

// run says one thing after the other. What was refused or failed is said again,
// by every second client, as SDKs do.
func (l *load) run(ctx context.Context, s *session, client int) {
	retries := client%2 == 0
	for n := 0; ctx.Err() == nil; n++ {
		one := said{name: fmt.Sprintf("m%s-%d", strings.ReplaceAll(s.id, "/", "-"), n)}
		for try := 0; ; try++ {
			// As behind a load balancer that keeps a session on its proxy.
			one.outcome = l.ask(l.site.proxies[client/2%len(l.site.proxies)], s.id, one.name, try, (client+n)%3 != 0, n%17 == 16 && try == 0)
			if one.outcome == acknowledged || one.outcome == left || one.outcome == told {
				break
			}
			select { // a client's backoff
			case <-ctx.Done():
			case <-time.After(time.Duration(50+rand.IntN(150)) * time.Millisecond):
			}
			if !retries || try == 100 || ctx.Err() != nil {
				break
			}
		}
		s.said = append(s.said, one)
		if l.think > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(l.think):
			}
		}
	}
}

// ask sends one request. leaves says that the client hangs up in the middle.
func (l *load) ask(p *proxy, session, name string, try int, stream, leaves bool) outcome {
	body, _ := json.Marshal(map[string]any{
		"model": "trial/echo", "sessionId": session, "stream": stream,
		"messages": []any{map[string]string{"role": "user", "content": name + " " + filler}},
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/api/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer sk-trial")
	req.Header.Set("serviceKey", serviceKey)
	req.Header.Set("Content-Type", "application/json")
	if try > 0 {
		req.Header.Set("x-stainless-retry-count", fmt.Sprint(try))
	}
	res, err := l.http.Do(req)
	if err != nil {
		return unknown
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusServiceUnavailable:
		if res.Header.Get("Retry-After") == "" {
			l.complain("a 503 without Retry-After")
		}
		return refused
	case res.StatusCode == http.StatusBadGateway || res.StatusCode == http.StatusGatewayTimeout:
		return unknown
	case res.StatusCode != http.StatusOK:
		b, _ := io.ReadAll(io.LimitReader(res.Body, 300))
		l.complain(fmt.Sprintf("%d: %s", res.StatusCode, b))
		return unknown
	}
	if stream {
		return readStream(res.Body, leaves)
	}
	reply, err := io.ReadAll(res.Body)
	switch {
	case err != nil || !gjson.ValidBytes(reply):
		return unknown
	case gjson.GetBytes(reply, "_metadata.memory.saved").Raw == "false":
		return told
	}
	return acknowledged
}

func (l *load) complain(what string) {
	l.wrong.Add(1)
	l.lastErr.Store(what)
}

func readStream(r io.Reader, leaves bool) outcome {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	events, notSaved := 0, false
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == ": backstory not-saved":
			notSaved = true
		case line == "data: [DONE]" && notSaved:
			return told
		case line == "data: [DONE]":
			return acknowledged
		case strings.HasPrefix(line, "data: {"):
			if events++; leaves && events == 4 {
				return left
			}
		}
	}
	return unknown
}

// messages returns what is stored of a session, in order: the names of the user's
// messages, and of those that replies answer with "re " before them.
func (l *load) messages(session string) ([]string, error) {
	var all []string
	for after := ""; ; {
		path := "/sessions/" + strings.ReplaceAll(session, "/", "%2F") + "/messages?order=asc&limit=100"
		if after != "" {
			path += "&after=" + after
		}
		page, err := l.site.get(l.site.proxies[0], path)
		var s statusError
		if errors.As(err, &s) && s == http.StatusNotFound {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		data := gjson.GetBytes(page, "data").Array()
		for _, m := range data {
			content := m.Get("content").Str
			first, rest, _ := strings.Cut(content, " ")
			if m.Get("role").Str == "assistant" {
				name, _, _ := strings.Cut(rest, " ")
				first = "re " + name
			}
			all = append(all, first)
		}
		if !gjson.GetBytes(page, "has_more").Bool() || len(data) == 0 {
			return all, nil
		}
		after = gjson.GetBytes(page, "last_id").Str
	}
}

// filler makes messages as long as people's.
const filler = "is what I would like to know about, as it was said the other day when we spoke of it at length."
