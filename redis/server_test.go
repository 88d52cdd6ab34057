package redis

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/backstory-proxy/backstory/store"
)

// server is a redis-server of the tests' own.
type server struct {
	port    int
	bus     int // the port of a Cluster's own messages
	process *exec.Cmd
	output  *bytes.Buffer
	stopped sync.Once
}

func (s *server) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }
func (s *server) url() string  { return "redis://" + s.addr() }

func (s *server) stop() {
	s.stopped.Do(func() {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	})
}

// client speaks to the server until the test ends.
func (s *server) client(t testing.TB) *goredis.Client {
	c := goredis.NewClient(&goredis.Options{Addr: s.addr(), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// freePort returns a port that nobody listens on, low enough that Redis' bus
// port has room above it.
func freePort() (int, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return 0, err
		}
		if port < 55_000 {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port below 55000")
}

// launch starts a redis-server in a folder, with arguments as on its command line.
func launch(folder string, args ...string) (*server, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	all := append(args, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "")
	s := &server{port: port, process: exec.Command(binary, all...), output: new(bytes.Buffer)}
	s.process.Stdout, s.process.Stderr = s.output, s.output
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	for range 500 {
		c, err := net.Dial("tcp", s.addr())
		if err == nil {
			return s, c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("redis-server doesn't start: %s", s.output)
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
