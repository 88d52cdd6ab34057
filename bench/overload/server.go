package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// server is the program under load.
type server struct {
	url, metrics, secret string
	router               *httptest.Server
	process              *exec.Cmd
	dir                  string
	goroutines           atomic.Int64 // at most
	watching             context.CancelFunc
}

const caddyfile = `{
	admin 127.0.0.1:%d
	persist_config off
	grace_period 2s
	backstory {
		plan load 1000000000
		key warm%[3]s warm load
		key unloaded%[3]s unloaded load
		key noisy%[3]s noisy load
		key quiet%[3]s quiet load
	}
}
http://127.0.0.1:%[2]d {
	bind 127.0.0.1
	backstory_health
	handle_path /api/v1/* {
		route {
			backstory
			reverse_proxy %[4]s
		}
	}
}
`

// startServer starts the program, with a folder of its own.
func startServer(ctx context.Context, o settings) (_ *server, err error) {
	binary, err := filepath.Abs(o.binary)
	if err != nil {
		return nil, err
	}
	s := &server{router: newRouter(), secret: rand.Text()}
	if s.dir, err = os.MkdirTemp("", "overload-"); err != nil {
		return nil, err
	}
	port, admin := freePort(), freePort()
	s.url, s.metrics = fmt.Sprintf("http://127.0.0.1:%d/api/v1", port), fmt.Sprintf("http://127.0.0.1:%d/metrics", admin)
	config := fmt.Sprintf(caddyfile, admin, port, s.secret, strings.TrimPrefix(s.router.URL, "http://"))
	if err := os.WriteFile(filepath.Join(s.dir, "Caddyfile"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.process = exec.Command(binary, "run", "--config", "Caddyfile")
	s.process.Dir, s.process.Stderr = s.dir, log
	s.process.Env = append(os.Environ(), "HOME="+s.dir, "XDG_DATA_HOME="+s.dir, "XDG_CONFIG_HOME="+s.dir, fmt.Sprintf("GOMAXPROCS=%d", o.procs))
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	for range 200 {
		if reply, err := http.Get(strings.TrimSuffix(s.url, "/api/v1") + "/readyz"); err == nil {
			reply.Body.Close()
			if reply.StatusCode == http.StatusOK {
				ctx, s.watching = context.WithCancel(ctx)
				go s.watch(ctx)
				return s, nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	text, _ := os.ReadFile(log.Name())
	s.watching = func() {}
	s.stop()
	return nil, fmt.Errorf("%s didn't start: %s", binary, text)
}

func freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// watch keeps the highest number of goroutines.
func (s *server) watch(ctx context.Context) {
	for tick := time.Tick(250 * time.Millisecond); ; {
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
		reply, err := http.Get(s.metrics)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
			if n, ok := strings.CutPrefix(lines.Text(), "go_goroutines "); ok {
				now, _ := strconv.ParseFloat(n, 64)
				s.goroutines.Store(max(s.goroutines.Load(), int64(now)))
			}
		}
		reply.Body.Close()
	}
}

// peakMB is the most memory that the program has had, as the kernel tells it.
func (s *server) peakMB() int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			kb, _ := strconv.Atoi(fields[1])
			return kb >> 10
		}
	}
	return 0
}

// cpu is how much time the program has taken.
func (s *server) cpu() time.Duration {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Process.Pid))
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // as Linux counts them, for all programs
}

func (s *server) stop() {
	s.watching()
	_ = s.process.Process.Signal(syscall.SIGTERM)
	_ = s.process.Wait()
	s.router.Close()
	_ = os.RemoveAll(s.dir)
}
