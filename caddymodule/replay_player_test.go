package caddymodule_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/backstory-proxy/backstory/internal/redistest"
)

// player sends the requests of a script.
type player struct {
	*site
	s      *script
	o      options
	router *scriptedRouter
	redis  *redistest.Server // nil: the store is another
	g      *golden
	out    strings.Builder
	async  map[string]chan func() // by name: what writes the reply down
	n      int                    // of the request in its scenario
	title  string
}

// play plays a script on a store of its own.
func play(t *testing.T, s *script, kind string) string {
	p := newPlayer(t, s)
	if kind == "redis" {
		p.useRedis(redistest.Start(t), filepath.Join(t.TempDir(), "journal.db"))
	} else {
		p.o.store = "sqlite " + filepath.Join(t.TempDir(), "backstory.db")
	}
	p.play()
	return p.out.String()
}

// newPlayer makes a player whose options lack a store.
func newPlayer(t *testing.T, s *script) *player {
	p := &player{site: &site{t: t}, s: s, o: s.site, router: newScriptedRouter(t, s), g: newGolden(), async: map[string]chan func(){}}
	p.o.upstream = p.router.URL
	p.o.behind = strings.ReplaceAll(p.o.behind, "{upstream}", p.router.URL)
	return p
}

func (p *player) useRedis(r *redistest.Server, journal string) {
	p.redis, p.router.kill = r, r.Kill
	p.o.store = "redis " + r.URL + " {\nfiles off\n}"
	p.o.app += "journal " + journal + "\n"
}

// play starts the site and plays the script.
func (p *player) play() {
	p.site = start(p.t, p.o)
	p.client.Transport = &http.Transport{DisableCompression: true}
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	defer p.client.CloseIdleConnections()
	for i, step := range p.s.steps {
		if step.scenario != p.title {
			p.title, p.n = step.scenario, 0
			fmt.Fprintf(&p.out, "=== %s\n", p.title)
		}
		if step.command != nil {
			p.command(step)
			continue
		}
		p.n++
		p.request(i, step)
		if p.t.Failed() {
			p.t.Fatalf("%s:%d: %s", step.from, step.line, step.scenario)
		}
	}
}

// command runs a line of the script that is no request.
func (p *player) command(s *step) {
	switch c := strings.Join(s.command, " "); {
	case c == "redis start":
		p.redis.Restart()
	case c == "redis kill":
		p.redis.Kill()
	case c == "key":
		p.g.vars["key"] = p.newKey()
	case c == "reload":
		p.load(p.o)
	case c == "restart":
		if err := caddy.Stop(); err != nil {
			p.t.Fatal(err)
		}
		p.load(p.o)
		clear(p.g.left) // the embedded store counts in memory
	case s.command[0] == "finish" && p.async[s.command[1]] != nil:
		done := p.async[s.command[1]]
		step, _, _ := strings.Cut(s.command[1], "/")
		for i, other := range p.s.steps {
			if other.options["async"] == step {
				close(p.router.holdOf(strconv.Itoa(i)).release)
			}
		}
		(<-done)()
	default:
		p.t.Fatalf("%s:%d: unknown command %q", s.from, s.line, c)
	}
}

// request sends a request and writes down what came of it.
func (p *player) request(i int, s *step) {
	key, n := p.keyOf(s), p.n
	run := func() func() {
		sent, r := p.send(i, s)
		path, want, _ := strings.Cut(s.options["until"], "=")
		met := func() bool { return r.get(path).String() == want || want == "" && r.get(path).Exists() }
		if path != "" && !met() {
			defer func() {
				if p.t.Failed() {
					p.t.Logf("%s:%d: the last reply was %d %s", s.from, s.line, r.status, r.body)
				}
			}()
			eventually(p.t, s.options["until"], func() bool {
				p.router.take(strconv.Itoa(i))
				sent, r = p.send(i, s)
				return met()
			})
		}
		got, said := p.router.take(strconv.Itoa(i))
		return func() {
			if s.upload != "" && r.status == http.StatusOK {
				p.g.named(s.upload, r.get("id").Str)
			}
			for _, f := range r.get("data").Array() {
				if f.Get("object").Str == "file" {
					p.g.named(f.Get("filename").Str, f.Get("id").Str)
				}
			}
			polled := s.options["until"] != ""
			if polled { // nobody knows how often
				p.g.left[key] = -1
			}
			p.out.WriteString(p.g.block(n, s, sent, got, said, r, key))
			if polled {
				p.g.left[key] = -1
			}
		}
	}
	name, async := s.options["async"]
	if !async {
		run()()
		return
	}
	done := make(chan func(), 1)
	p.async[name] = done
	go func() { done <- run() }()
	<-p.router.holdOf(strconv.Itoa(i)).arrived
}

// keyOf is the service key that a step is sent with.
func (p *player) keyOf(s *step) string {
	if values, ok := s.header["Servicekey"]; ok {
		return values[0]
	}
	return acme
}

func (p *player) send(i int, s *step) (sent []byte, r reply) {
	sent = []byte(p.g.actual(string(s.body)))
	body, contentType := sent, "application/json"
	if s.upload != "" {
		body, contentType = p.form(s, sent)
	}
	path := p.url + p.g.actual(s.path)
	if _, atRoot := s.options["root"]; atRoot {
		path = p.root + s.path
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	packing := s.options["packed"]
	switch packing {
	case "gzip":
		body = zipped(body)
	case "zstd":
		z, _ := zstd.NewWriter(nil)
		body = z.EncodeAll(body, nil)
	}
	var in io.Reader
	if len(body) > 0 {
		in = bytes.NewReader(body)
	}
	if _, chunked := s.options["chunked"]; chunked {
		in = io.MultiReader(in)
	}
	req, err := http.NewRequestWithContext(ctx, s.method, path, in)
	if err != nil {
		p.t.Errorf("%s:%d: %v", s.from, s.line, err)
		return sent, r
	}
	req.Header.Set("serviceKey", acme)
	req.Header.Set("Authorization", "Bearer "+router)
	if len(body) > 0 {
		req.Header.Set("Content-Type", contentType)
	}
	if packing != "" {
		req.Header.Set("Content-Encoding", packing)
	}
	for name, values := range s.header {
		delete(req.Header, name)
		for _, value := range values {
			if value != "" {
				req.Header.Add(name, p.g.actual(value))
			}
		}
	}
	req.Header.Set(stepHeader, strconv.Itoa(i))
	res, err := p.client.Do(req)
	if err != nil {
		p.t.Errorf("%s:%d: %v", s.from, s.line, err)
		return sent, r
	}
	defer res.Body.Close()
	r = reply{res.StatusCode, res.Header, p.read(res.Body, s)}
	return sent, r
}

// read reads a reply to its end; or as far as the step says, and leaves. How it
// ended stands behind it, if not well.
func (p *player) read(body io.Reader, s *step) string {
	var b bytes.Buffer
	leave, leaves := s.options["leave"]
	for buf := make([]byte, 32<<10); ; {
		n, err := body.Read(buf)
		b.Write(buf[:n])
		switch {
		case leaves && strings.Contains(b.String(), leave):
			return b.String()
		case err == io.EOF: //nolint:errorlint // as io.Reader documents it
			return b.String()
		case err != nil:
			return b.String() + "\n(broken off)"
		}
	}
}

// form makes an upload's body. Its boundary is always the same.
func (p *player) form(s *step, content []byte) ([]byte, string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary("replay")
	f, _ := w.CreateFormFile("file", s.upload)
	_, _ = f.Write(content)
	purpose := "assistants"
	if other, ok := s.options["purpose"]; ok {
		purpose = other
	}
	_ = w.WriteField("purpose", purpose)
	_ = w.Close()
	return b.Bytes(), w.FormDataContentType()
}
