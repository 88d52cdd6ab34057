package redis

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/backstory-proxy/backstory/internal/porttest"
	"github.com/backstory-proxy/backstory/store"
)

// server is a redis-server of the tests' own.
type server struct {
	port    int
	other   int // stands for otherPort
	process *exec.Cmd
	output  output
	ended   chan struct{}
}

// otherPort is an argument in whose place launch puts a second port: of TLS, or of
// a Cluster's own messages.
const otherPort = "OTHER PORT"

func (s *server) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }
func (s *server) url() string  { return "redis://" + s.addr() }

func (s *server) stop() {
	_ = s.process.Process.Kill()
	<-s.ended
}

// output is what a server writes.
type output struct {
	mu     sync.Mutex
	text   bytes.Buffer
	listen bool          // the server has said that it does
	ready  chan struct{} // closed then
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	if !o.listen && (bytes.Contains(o.text.Bytes(), []byte("Ready to accept connections")) || bytes.Contains(o.text.Bytes(), []byte("Sentinel ID is"))) {
		o.listen = true
		close(o.ready)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// client speaks to the server until the test ends.
func (s *server) client(t testing.TB) *goredis.Client {
	c := goredis.NewClient(&goredis.Options{Addr: s.addr(), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// launch starts a redis-server in a folder, with arguments as on its command
// line. Where another program has taken one of its ports it gets others.
func launch(folder string, args ...string) (*server, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	for {
		s, err := launchOnce(binary, folder, args)
		if err == nil || !strings.Contains(err.Error(), "Address already in use") {
			return s, err
		}
	}
}

func launchOnce(binary, folder string, args []string) (*server, error) {
	port, err := porttest.Next()
	if err != nil {
		return nil, err
	}
	other, err := porttest.Next()
	if err != nil {
		return nil, err
	}
	all := append(slices.Clone(args), "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "")
	for i := range all {
		if all[i] == otherPort {
			all[i] = strconv.Itoa(other)
		}
	}
	s := &server{port: port, other: other, process: exec.Command(binary, all...), output: output{ready: make(chan struct{})}, ended: make(chan struct{})}
	s.process.Stdout, s.process.Stderr = &s.output, &s.output
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.process.Wait()
		close(s.ended)
	}()
	// That somebody answers at the port wouldn't say that it is this server.
	select {
	case <-s.output.ready:
		return s, nil
	case <-s.ended:
	case <-time.After(30 * time.Second):
		s.stop()
	}
	return nil, fmt.Errorf("redis-server doesn't start: %s", &s.output)
}

// needServer skips the test where there is to be no Redis, and fails it where
// there is none.
func needServer(t testing.TB) {
	t.Helper()
	if os.Getenv("BACKSTORY_TEST_NO_REDIS") == "1" {
		t.Skip("BACKSTORY_TEST_NO_REDIS is set")
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatal("there is no redis-server to test with: apt-get install redis-server, or set BACKSTORY_TEST_NO_REDIS=1 to go without")
	}
}

// start starts a redis-server for the time of the test.
func start(t testing.TB, args ...string) *server {
	t.Helper()
	needServer(t)
	s, err := launch(t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

var shared struct {
	sync.Mutex
	*server
	folder string
}

// sharedServer is one redis-server for all tests that need nothing special; each
// has a prefix of its own.
func sharedServer(t testing.TB) *server {
	t.Helper()
	needServer(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		folder, err := os.MkdirTemp("", "backstory-redis")
		if err != nil {
			t.Fatal(err)
		}
		shared.folder = folder
		if shared.server, err = launch(folder); err != nil {
			t.Fatal(err)
		}
	}
	return shared.server
}

// afterAll is what tests leave to be done when all have run.
var afterAll = []func() error{saveTape, func() error {
	if shared.server == nil {
		return nil
	}
	shared.stop()
	return os.RemoveAll(shared.folder)
}}

func TestMain(m *testing.M) {
	logging.Disable() // of go-redis: servers go away on purpose here
	code := m.Run()
	for _, f := range afterAll {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// eventually waits for a server to come to a state.
func eventually(t testing.TB, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		ok, err := done(ctx)
		if ok && err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: it didn't come to that: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// of is the scope of a tenant.
func of(tenant string) store.Scope { return store.Scope{Tenant: tenant} }
