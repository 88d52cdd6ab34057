package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/backstory-proxy/backstory/internal/porttest"
)

// serviceKey is the only one that the proxies know.
const serviceKey = "trial-0123456789abcdef"

// site is what a trial runs on: proxies with one store, and a model router.
type site struct {
	bin     string
	dir     string
	store   string // the store directive's arguments
	options string // more options of the app
	router  *router
	proxies []*proxy
	servers []*process // of the store, if it has any: the first is the primary
	disk    *disk      // of the embedded store, if one could be made
	http    http.Client
}

// process is a program that can be killed and started again.
type process struct {
	args  []string
	env   []string
	dir   string
	ready string // what it prints when it is ready
	cmd   *exec.Cmd
	ended chan struct{}
	last  []string // of its output
}

func (p *process) start() error {
	p.cmd = exec.Command(p.args[0], p.args[1:]...)
	p.cmd.Env, p.cmd.Dir = append(os.Environ(), p.env...), p.dir
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	p.cmd.Stdout, p.cmd.Stderr = write, write
	err = p.cmd.Start()
	write.Close()
	if err != nil {
		return err
	}
	cmd, ended, ready := p.cmd, make(chan struct{}), make(chan struct{})
	p.ended, p.last = ended, nil
	running.Store(p.cmd.Process, true)
	go func() {
		defer close(ended)
		seen := false
		lines := bufio.NewScanner(read)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if !seen {
				p.last = append(p.last, lines.Text())
			}
			if !seen && strings.Contains(lines.Text(), p.ready) {
				seen = true
				close(ready)
			}
		}
		_, _ = io.Copy(io.Discard, read)
		read.Close()
		_ = cmd.Wait()
		running.Delete(cmd.Process)
	}()
	select {
	case <-ready:
		return nil
	case <-ended:
		return fmt.Errorf("%s ended:\n%s", p.args[0], strings.Join(p.last[max(0, len(p.last)-10):], "\n"))
	case <-time.After(time.Minute):
		return fmt.Errorf("%s doesn't start:\n%s", p.args[0], strings.Join(p.last[max(0, len(p.last)-10):], "\n"))
	}
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// running are the processes that have not ended.
var running sync.Map

// endOnSignal ends all processes, and then this one, when it is told to end.
func endOnSignal() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-told
		running.Range(func(p, _ any) bool {
			_ = p.(*os.Process).Kill()
			return true
		})
		os.Exit(1)
	}()
}

// end sends the signal and waits until the process is gone.
func (p *process) end(s syscall.Signal) {
	if p.cmd == nil {
		return
	}
	p.signal(s)
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		p.signal(syscall.SIGKILL)
		<-p.ended
	}
	p.cmd = nil
}

// proxy is one Backstory.
type proxy struct {
	process
	url    string
	admin  string
	config string // the path of its Caddyfile
}

// newSite prepares a site with n proxies. Nothing runs yet.
func newSite(bin, dir, store, options string, n int) (*site, error) {
	s := &site{bin: bin, dir: dir, store: store, options: options, router: newRouter(), http: http.Client{Timeout: 10 * time.Second}}
	for i := range n {
		p := &proxy{}
		home := filepath.Join(dir, fmt.Sprintf("proxy%d", i))
		if err := os.MkdirAll(home, 0o700); err != nil {
			return nil, err
		}
		var ports [2]int
		for j := range ports {
			port, err := porttest.Next()
			if err != nil {
				return nil, err
			}
			ports[j] = port
		}
		p.url, p.admin = fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
		p.config = filepath.Join(home, "Caddyfile")
		if err := os.WriteFile(p.config, []byte(s.caddyfile(p)), 0o600); err != nil {
			return nil, err
		}
		p.process = process{
			args: []string{bin, "run", "--config", p.config}, dir: home, ready: "serving initial configuration",
			env: []string{"HOME=" + home, "XDG_DATA_HOME=" + home, "XDG_CONFIG_HOME=" + home},
		}
		s.proxies = append(s.proxies, p)
	}
	return s, nil
}

func (s *site) caddyfile(p *proxy) string {
	return fmt.Sprintf(`{
	admin %s
	persist_config off
	grace_period 2s
	metrics
	backstory {
		store %s
		plan trial 1000000000
		key %s trial trial
		%s
	}
}

%s {
	bind 127.0.0.1
	backstory_health
	handle_path /api/v1/* {
		route {
			backstory
			rewrite * /v1{uri}
			reverse_proxy %s
		}
	}
	handle_errors {
		backstory_errors
	}
}
`, p.admin, s.store, serviceKey, s.options, p.url, s.router.URL)
}

// start starts the servers of the store, then the proxies.
func (s *site) start() error {
	for _, p := range s.servers {
		if err := p.start(); err != nil {
			return err
		}
	}
	for _, p := range s.proxies {
		if err := p.start(); err != nil {
			return err
		}
	}
	return nil
}

// end ends everything.
func (s *site) end() {
	for _, p := range s.proxies {
		p.end(syscall.SIGTERM)
	}
	for _, p := range s.servers {
		p.end(syscall.SIGKILL)
	}
	s.router.Close()
	if s.disk != nil {
		s.disk.unmount()
	}
}

// reload loads a proxy's configuration again, through its admin API.
func (p *proxy) reload() error {
	config, err := os.ReadFile(p.config)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+p.admin+"/load", bytes.NewReader(config))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "text/caddyfile")
	req.Header.Set("Cache-Control", "must-revalidate") // though nothing has changed
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(res.Body)
		return fmt.Errorf("reload: %d: %s", res.StatusCode, b)
	}
	return nil
}

type statusError int

func (e statusError) Error() string { return fmt.Sprintf("status %d", int(e)) }

// get asks an endpoint of Backstory's own, again and again while it says 503.
func (s *site) get(p *proxy, path string) ([]byte, error) {
	deadline := time.Now().Add(time.Minute)
	for {
		req, err := http.NewRequest(http.MethodGet, p.url+"/api/v1"+path, nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer sk-trial")
		req.Header.Set("serviceKey", serviceKey)
		res, err := s.http.Do(req)
		if err == nil {
			body, readErr := io.ReadAll(res.Body)
			res.Body.Close()
			switch {
			case readErr == nil && res.StatusCode == http.StatusOK:
				return body, nil
			case res.StatusCode != http.StatusServiceUnavailable && readErr == nil:
				return nil, statusError(res.StatusCode)
			}
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(err, fmt.Errorf("%s: still not answered after a minute", path))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// recover waits until every proxy takes a chat, and returns how long that took.
func (s *site) recover(l *load) (time.Duration, error) {
	began := time.Now()
	for i, p := range s.proxies {
		id := fmt.Sprintf("recovery/%d/%d", began.UnixNano(), i)
		for l.ask(p, id, "recovered", 0, false, false) != acknowledged {
			if time.Since(began) > time.Minute {
				return 0, fmt.Errorf("%s doesn't recover", p.url)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return time.Since(began), nil
}

// drained waits until nothing waits in the proxies' journals.
func (s *site) drained() error {
	deadline := time.Now().Add(time.Minute)
	for _, p := range s.proxies {
		for {
			depth, err := p.metric("backstory_journal_depth")
			if err == nil && depth == 0 {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("the journal still holds %v exchanges: %w", depth, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

// metric returns the sum of a metric's series.
func (p *proxy) metric(name string) (float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	sum := 0.0
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name)
		if !ok || rest == "" || (rest[0] != ' ' && rest[0] != '{') {
			continue
		}
		var v float64
		if _, err := fmt.Sscan(rest[strings.LastIndexByte(rest, ' ')+1:], &v); err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, lines.Err()
}
