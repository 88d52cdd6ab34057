package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// settings are what the measurements change about a server.
type settings struct {
	added     int // max_added_tokens
	files     int // max_file_tokens; 0: the default
	recallOff bool
}

// server is ./backstory with the demo router behind it, in a folder of its own.
type server struct {
	*client
	bin     string
	dir     string
	name    string // of the store
	store   string // the store directive's arguments
	tenants []string
	ports   [2]int // of Backstory and of the demo router

	process *exec.Cmd
	ended   chan struct{}
}

// newServer prepares a server that knows these tenants. It isn't started yet.
func newServer(bin, dir string, b backend, tenants []string) (*server, error) {
	s := &server{bin: bin, dir: dir, name: b.name, store: b.directive, tenants: tenants}
	var listeners []net.Listener // all at once, so that the ports differ
	for i := range s.ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		s.ports[i] = l.Addr().(*net.TCPAddr).Port
		listeners = append(listeners, l)
	}
	for _, l := range listeners {
		l.Close()
	}
	// The key is one that no other server knows: a port that was taken
	// meanwhile shows as 401.
	s.client = newClient(fmt.Sprintf("http://127.0.0.1:%d", s.ports[0]), rand.Text())
	return s, nil
}

// config is the Caddyfile.
func (s *server) config(o settings) string {
	var app strings.Builder
	for _, t := range s.tenants {
		fmt.Fprintf(&app, "\t\tkey %s %s bench\n", s.key(t), t)
	}
	fmt.Fprintf(&app, "\t\tcontext {\n\t\t\tmodel %s 10000000\n\t\t\tmax_added_tokens %d\n", model, o.added)
	if o.files > 0 {
		fmt.Fprintf(&app, "\t\t\tmax_file_tokens %d\n", o.files)
	}
	if o.recallOff {
		app.WriteString("\t\t\trecall off\n")
	}
	app.WriteString("\t\t}\n")
	return fmt.Sprintf(`{
	admin off
	persist_config off
	grace_period 5s
	backstory {
		store %s
		embedder hashing
		plan bench 1000000000
%s	}
}

http://127.0.0.1:%d {
	bind 127.0.0.1
	backstory_health
	handle_path /api/v1/* {
		route {
			backstory
			rewrite * /v1{uri}
			reverse_proxy 127.0.0.1:%[4]d
		}
	}
	handle_errors {
		backstory_errors
	}
}

http://127.0.0.1:%[4]d {
	bind 127.0.0.1
	backstory_demo_router
}
`, s.store, app.String(), s.ports[0], s.ports[1])
}

// understands reports whether this build knows all options of the settings.
func (s *server) understands(ctx context.Context, o settings) bool {
	path := filepath.Join(s.dir, "Caddyfile.tried")
	if err := os.WriteFile(path, []byte(s.config(o)), 0o600); err != nil {
		return false
	}
	return s.command(ctx, "adapt", "--config", path).Run() == nil
}

func (s *server) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, s.bin, args...)
	c.Dir = s.dir
	c.Env = append(os.Environ(), "HOME="+s.dir, "XDG_DATA_HOME="+s.dir, "XDG_CONFIG_HOME="+s.dir)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 20 * time.Second
	return c
}

// run starts the server with these settings, in place of the one that runs. It
// returns when the server is ready.
func (s *server) run(ctx context.Context, o settings) error {
	s.stop()
	path := filepath.Join(s.dir, "Caddyfile")
	if err := os.WriteFile(path, []byte(s.config(o)), 0o600); err != nil {
		return err
	}
	s.process = s.command(ctx, "run", "--config", path)
	log, err := s.process.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.process.Start(); err != nil {
		s.process = nil
		return err
	}
	s.ended = make(chan struct{})
	ready, last := make(chan struct{}), new(lastLines)
	go func() {
		defer close(s.ended)
		lines := bufio.NewScanner(log)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			last.add(lines.Text())
			if strings.Contains(lines.Text(), "serving initial configuration") {
				close(ready)
			}
		}
		_, _ = io.Copy(io.Discard, log) // behind a line that is too long
		_ = s.process.Wait()
	}()
	select {
	case <-ready:
		return s.ready(ctx)
	case <-s.ended:
		return fmt.Errorf("%s ended: %s", s.bin, last)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop ends the server, if one runs.
func (s *server) stop() {
	if s.process == nil {
		return
	}
	s.http.CloseIdleConnections()
	_ = s.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		_ = s.process.Process.Kill()
		<-s.ended
	}
	s.process = nil
}

// lastLines keeps the end of a log, to be shown where the server didn't start.
type lastLines struct{ lines []string }

func (l *lastLines) add(line string) {
	const most = 10
	if l.lines = append(l.lines, line); len(l.lines) > most {
		l.lines = l.lines[1:]
	}
}

func (l *lastLines) String() string { return strings.Join(l.lines, "\n") }
