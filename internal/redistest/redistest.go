// Package redistest runs redis-servers for tests of what stands above the Redis
// store.
package redistest

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Server is a redis-server that a test can kill and start again. What it
// acknowledged is still there then. The servers of most distributions have no
// search module: what is tested on one does without files.
type Server struct {
	// URL is its address, with the scheme redis.
	URL string

	t       testing.TB
	address string
	args    []string
	cmd     *exec.Cmd // nil: it is down
}

// Start runs a server until the test ends. Where there is no redis-server the
// test fails, or is skipped if BACKSTORY_TEST_NO_REDIS is set.
func Start(t testing.TB) *Server {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("BACKSTORY_TEST_NO_REDIS") != "" {
			t.Skip("there is no redis-server, as BACKSTORY_TEST_NO_REDIS says")
		}
		t.Fatal("there is no redis-server: apt-get install redis-server, or set BACKSTORY_TEST_NO_REDIS=1")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	host, port, _ := net.SplitHostPort(address)
	s := &Server{URL: "redis://" + address, t: t, address: address, args: []string{
		binary, "--bind", host, "--port", port, "--save", "", "--appendonly", "yes", "--appendfsync", "no", "--dir", t.TempDir(),
	}}
	t.Cleanup(s.Kill)
	s.Restart()
	return s
}

// Restart runs the server again, after Kill.
func (s *Server) Restart() {
	s.t.Helper()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		if c, err := net.Dial("tcp", s.address); err == nil {
			_ = c.Close()
			return
		}
	}
	s.t.Fatal("redis-server doesn't listen")
}

// Kill ends the server at once, as a crash does.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}
