package gateway_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/gateway"
	"github.com/backstory-proxy/backstory/internal/redistest"
	"github.com/backstory-proxy/backstory/knowledge/sandbox"
	"github.com/backstory-proxy/backstory/redis"
	"github.com/backstory-proxy/backstory/sqlite"
	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/tokens"
)

// TestMain makes this binary, run again to read a file, do so, as the real
// program does.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == sandbox.Argument {
		if err := sandbox.Child(os.Stdin, os.Stdout, os.Stderr); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// testDimensions are those of the vectors, unless a test says otherwise.
const testDimensions = 1024

// The keys of the sites under test.
const (
	acme   = "key-of-acme"
	beta   = "key-of-beta"
	tiny   = "key-of-tiny" // on the free plan
	router = "sk-router"
)

// site is a server with the API below /api/v1 and health at its root, on a
// loopback port. Each has a store of its own: tests run side by side.
type site struct {
	t      *testing.T
	root   string
	url    string // ends in /api/v1
	client http.Client
	log    *logBuffer

	running atomic.Pointer[running]
}

// running is a gateway on an open store.
type running struct {
	gateway *gateway.Gateway
	shared  *gateway.Shared
	api     http.Handler
}

// options adjust a site; the zero value is a fresh store and hashing.
type options struct {
	upstream string                 // URL of the model router
	store    opener                 // default: SQLite with a fresh file
	adjust   func(*gateway.Options) // more options of the gateway
	router   http.Handler           // what leads to the router; default: a reverse proxy
	journal  string                 // path of the journal; default: none
}

// opener opens a store for the embedder whose vectors it will be given.
type opener func(embed.Embedder) (store.Store, error)

// database is SQLite with a file.
func database(path string) opener {
	return func(embed.Embedder) (store.Store, error) {
		return sqlite.Open(context.Background(), path, sqlite.Options{})
	}
}

// redisAt is Redis at a URL, without files.
func redisAt(url string) opener {
	return func(embed.Embedder) (store.Store, error) {
		return redis.Open(context.Background(), url, redis.Options{NoFiles: true})
	}
}

// routerEmbedder asks the router for vectors.
func routerEmbedder(model string, dimensions int) embed.Embedder {
	return embed.NewRouter(model, dimensions, embed.RouterOptions{Count: tokens.ForModel(model).Count})
}

// start starts a site, which ends with the test.
func start(t *testing.T, o options) *site {
	t.Helper()
	s := &site{t: t, log: new(logBuffer)}
	s.load(o)
	server := httptest.NewServer(s)
	s.root, s.url = server.URL, server.URL+"/api/v1"
	transport := http.DefaultTransport.(*http.Transport).Clone() // it waits for leave to send a body
	s.client.Transport = transport
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		s.stop()
	})
	return s
}

// load runs a gateway in place of the one that runs, as a process does that is
// started again.
func (s *site) load(o options) {
	s.t.Helper()
	s.stop()
	if o.store == nil {
		o.store = database(filepath.Join(s.t.TempDir(), "backstory.db"))
	}
	r, err := s.run(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.running.Store(r)
}

func (s *site) run(o options) (*running, error) {
	logger := s.log.logger()
	settings := gateway.Options{
		Keys: []gateway.Key{
			{Key: acme, Tenant: "acme", Plan: "enterprise"}, {Key: beta, Tenant: "beta", Plan: "enterprise"}, {Key: tiny, Tenant: "tiny", Plan: "free"},
		},
		Embedder: embed.NewHashing(testDimensions), Sandbox: readers, Logger: logger,
	}
	if o.adjust != nil {
		o.adjust(&settings)
	}
	g, err := gateway.New(settings)
	if err != nil {
		return nil, err
	}
	db, err := o.store(settings.Embedder)
	if err != nil {
		return nil, err
	}
	shared, err := gateway.Share(context.Background(), db, gateway.JournalOptions{Path: o.journal, Location: "test"}, func() *zap.Logger { return logger })
	if err != nil {
		return nil, err
	}
	g.Start(shared, nil)
	if o.router == nil {
		o.router = proxyTo(s.t, o.upstream)
	}
	return &running{g, shared, http.StripPrefix("/api/v1", g.Handler(o.router))}, nil
}

// readers are shared, as they are by all configurations of a process.
var readers = sandbox.New()

// stop ends the gateway that runs, where one does.
func (s *site) stop() {
	s.t.Helper()
	if r := s.running.Swap(nil); r != nil {
		if err := r.shared.Close(); err != nil {
			s.t.Errorf("close the store: %v", err)
		}
	}
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	running := s.running.Load()
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/v1/"):
		running.api.ServeHTTP(w, r)
	case r.URL.Path == "/healthz":
		running.gateway.Live(w, r)
	case r.URL.Path == "/readyz":
		running.gateway.Ready(w, r)
	default:
		running.gateway.Error(w, r, http.StatusNotFound)
	}
}

// proxyTo leads to a model router, whose API is below /v1.
func proxyTo(t *testing.T, upstream string) http.Handler {
	t.Helper()
	target, err := url.Parse(upstream + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // replies that break off
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			status := http.StatusBadGateway
			if e, ok := err.(net.Error); ok && e.Timeout() {
				status = http.StatusGatewayTimeout
			}
			gateway.Fail(w, &gateway.RouterError{Status: status, Err: err})
		},
	}
}

// logBuffer keeps what a site logs, as lines of JSON.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) logger() *zap.Logger {
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.AddSync(b), zap.DebugLevel))
}

// logged is what the site has logged so far.
func (s *site) logged() string {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.text.String()
}

// logLine is the log's line with the message and the field, where it is there.
func logLine(s *site, message, field, value string) gjson.Result {
	for line := range strings.Lines(s.logged()) {
		l := gjson.Parse(line)
		if l.Get("msg").Str == message && l.Get(field).Str == value {
			return l
		}
	}
	return gjson.Result{}
}

// stores are the kinds of stores that sessions are tested on.
func stores(t *testing.T) map[string]opener {
	t.Helper()
	return map[string]opener{"SQLite": nil, "Redis": redisAt(redistest.Start(t).URL)}
}
