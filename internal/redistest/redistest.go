// Package redistest runs redis-servers for tests of what stands above the Redis
// store.
package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/backstory-proxy/backstory/internal/porttest"
)

// Server is a redis-server that a test can kill and start again. What it
// acknowledged is still there then. The servers of most distributions have no
// search module: what is tested on one does without files.
type Server struct {
	// URL is its address, with the scheme redis.
	URL string
	// Address is its host and port.
	Address string

	t    testing.TB
	args []string
	cmd  *exec.Cmd // nil: it is down
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
	port, err := porttest.Next()
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s := &Server{URL: "redis://" + address, Address: address, t: t, args: []string{
		binary, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--save", "", "--appendonly", "yes", "--appendfsync", "no", "--dir", t.TempDir(),
	}}
	t.Cleanup(s.Kill)
	s.Restart()
	return s
}

// Restart runs the server again, after Kill.
func (s *Server) Restart() {
	s.t.Helper()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	output, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	// That somebody answers at the port wouldn't say that it is this server.
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return
		}
	}
	s.t.Fatal("redis-server doesn't start")
}

// Limit sets the server's maxmemory.
func (s *Server) Limit(bytes string) { s.tell("CONFIG", "SET", "maxmemory", bytes) }

// Freeze has the server stand still: it keeps its connections, and takes new
// ones, and answers nothing until Thaw.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw has the server go on.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(which os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(which); err != nil {
		s.t.Fatal(err)
	}
}

// tell has the server carry out a command.
func (s *Server) tell(words ...string) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s\r\n", strings.Join(words, " ")); err != nil {
		s.t.Fatal(err)
	}
	if reply, err := bufio.NewReader(conn).ReadString('\n'); err != nil || reply != "+OK\r\n" {
		s.t.Fatalf("%s: %q, %v", words, reply, err)
	}
}

// Kill ends the server at once, as a crash does.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}
