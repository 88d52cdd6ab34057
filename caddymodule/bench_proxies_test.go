package caddymodule_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/tidwall/gjson"
)

func init() {
	caddy.RegisterModule(usageHandler{})
	httpcaddyfile.RegisterHandlerDirective("bench_usage", func(httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		return usageHandler{}, nil
	})
}

// proxies are plain Caddy and Backstory in one process, in front of a router in
// this one.
type proxies struct {
	url    string
	router *httptest.Server
	client *http.Client
}

// benchConfig names the environment variable with the child's Caddyfile.
const benchConfig = "BACKSTORY_BENCH_CADDYFILE"

// The budget of history is 50 of the filler's messages.
const benchCaddyfile = `{
	admin off
	persist_config off
	auto_https off
	log {
		output discard
	}
	backstory {
		store sqlite %[1]s
		key %[2]s acme unlimited
		plan unlimited 1000000000
		context {
			max_added_tokens %[3]d
		}
	}
}
http://127.0.0.1:0 {
	bind 127.0.0.1
	handle_path /caddy/v1/* {
		rewrite * /v1{uri}
		reverse_proxy %[4]s
	}
	handle_path /backstory/v1/* {
		route {
			backstory
			rewrite * /v1{uri}
			reverse_proxy %[4]s
		}
	}
	route /usage {
		bench_usage
	}
}`

// startProxies fills a store and starts the process.
func startProxies(b *testing.B, fill func(*filler)) *proxies {
	if _, err := cpuTime(); err != nil {
		b.Skip(err)
	}
	p := &proxies{
		router: httptest.NewServer(http.HandlerFunc(benchRouter)),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: streams}},
	}
	b.Cleanup(p.router.Close)
	b.Cleanup(p.client.CloseIdleConnections)
	db := filepath.Join(b.TempDir(), "backstory.db")
	fillStore(b, db, fill)

	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	config := fmt.Sprintf(benchCaddyfile, db, acme, 50*fillTokens, p.router.URL)
	child := exec.CommandContext(b.Context(), self)
	child.Env = append(os.Environ(), benchConfig+"="+config)
	var log bytes.Buffer
	child.Stderr = &log
	alive, err := child.StdinPipe() // closed when this process ends, however it does
	if err != nil {
		b.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	p.url, err = bufio.NewReader(out).ReadString('\n')
	b.Cleanup(func() {
		_ = alive.Close()
		_ = child.Wait() // the end of b's context has killed it
	})
	if err != nil {
		_ = child.Wait()
		b.Fatalf("the child did not start: %s", log.String())
	}
	p.url = strings.TrimSpace(p.url)
	return p
}

// benchChild is all that a child process does: it runs Caddy until its parent
// ends, and with it the standard input. It returns false in any other process.
func benchChild() bool {
	config, ok := os.LookupEnv(benchConfig)
	if !ok {
		return false
	}
	adapter := caddyfile.Adapter{ServerType: httpcaddyfile.ServerType{}}
	adapted, _, err := adapter.Adapt([]byte(config), nil)
	if err == nil {
		err = caddy.Load(adapted, true)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	app, _ := caddy.ActiveContext().App("http")
	for _, server := range app.(*caddyhttp.App).Servers {
		fmt.Println("http://" + server.Listeners()[0].Addr().String())
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return true
}

// usage is what the process has used since it began.
type usage struct {
	CPU            float64 // µs
	Bytes, Objects float64 // allocated
}

// usageHandler answers with the usage of its process.
type usageHandler struct{}

// CaddyModule returns the Caddy module information.
func (usageHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.bench_usage", New: func() caddy.Module { return usageHandler{} }}
}

func (usageHandler) ServeHTTP(w http.ResponseWriter, _ *http.Request, _ caddyhttp.Handler) error {
	cpu, err := cpuTime()
	if err != nil {
		return err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return json.NewEncoder(w).Encode(usage{micros(cpu), float64(m.TotalAlloc), float64(m.Mallocs)})
}

func (p *proxies) usage(b *testing.B) (u usage) {
	res, err := p.client.Get(p.url + "/usage")
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&u); err != nil {
		b.Fatal(err)
	}
	return u
}

// round sends n requests, from number first on, over a few connections: all at
// once where they are streams. It returns how long each took, in microseconds.
func (p *proxies) round(b *testing.B, w way, first, n int) []float64 {
	atOnce := 4
	if w.chunks > 0 {
		atOnce = n
	}
	latencies := make([]float64, n)
	var next atomic.Int64
	var senders sync.WaitGroup
	for range atOnce {
		senders.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && !b.Failed(); i = int(next.Add(1)) - 1 {
				start := time.Now()
				if _, err := p.send(w, first+i); err != nil {
					b.Error(err)
				}
				latencies[i] = micros(time.Since(start))
			}
		})
	}
	senders.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return latencies
}

// send sends the i-th request of a way, reads the reply to its end, and returns
// when it began.
func (p *proxies) send(w way, i int) (first time.Time, err error) {
	res, err := p.post(w.base, w.body(i), w.chunks)
	if err != nil {
		return first, err
	}
	defer res.Body.Close()
	var body bytes.Buffer
	if _, err = io.CopyN(&body, res.Body, 1); err != nil {
		return first, err
	}
	first = time.Now()
	if _, err = body.ReadFrom(res.Body); err != nil {
		return first, err
	}
	if res.StatusCode != http.StatusOK || w.chunks > 0 && !strings.HasSuffix(body.String(), done) {
		return first, fmt.Errorf("%s: status %d: %s", w.base, res.StatusCode, body.String())
	}
	return first, nil
}

func (p *proxies) post(base, body string, chunks int) (*http.Response, error) {
	if strings.HasPrefix(base, "/") {
		base = p.url + base
	}
	r, err := http.NewRequest("POST", base+"/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+router)
	r.Header.Set("serviceKey", acme)
	if chunks > 0 {
		r.Header.Set(headerChunks, strconv.Itoa(chunks))
	}
	return p.client.Do(r)
}

// check makes sure that a session gives as many messages as it should, at
// least, by a figure of the metadata.
func (p *proxies) check(b *testing.B, session, figure string, want int) {
	res, err := p.post("/backstory/v1", question(0, "", fmt.Sprintf(`"sessionId":%q,"saveToMemory":false`, session)), 0)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if got := gjson.GetBytes(body, "_metadata.memory."+figure).Int(); got < int64(want) {
		b.Fatalf("session %s: %s is %d, want %d (%v): %s", session, figure, got, want, err, body)
	}
}

// headerChunks asks benchRouter for a stream of that many chunks.
const headerChunks = "X-Bench-Chunks"

// benchReply is about 1 KB.
var benchReply = []byte(jsonReply(strings.Repeat("The answer is as long as answers are. ", 20)))

// benchRouter answers like a model router: with the same 1 KB, or a stream with
// a chunk each millisecond.
func benchRouter(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if strings.HasSuffix(r.URL.Path, "/models") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[{"id":"`+benchModel+`","context_length":128000}]}`)
		return
	}
	n, _ := strconv.Atoi(r.Header.Get(headerChunks))
	if n == 0 {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(benchReply)
		return
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range n {
		writeEvents(w, delta(" word"))
		<-tick.C
	}
	writeEvents(w, finished, done)
}
