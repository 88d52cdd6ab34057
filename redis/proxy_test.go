package redis

import (
	"bufio"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy stands before a server. It counts the turns, each a question and its
// answer however many commands it has, and may answer commands itself.
type proxy struct {
	upstream string
	listener net.Listener
	turns    atomic.Int64
	// handle, where set, is asked about each command; forward has the server
	// answer it. What it returns is the answer.
	handle func(command value, forward func() (value, error)) (value, error)

	// drip, where set, says how much of an answer is sent at a time, and how
	// long the pause is behind it.
	drip atomic.Pointer[func() (int, time.Duration)]

	mu    sync.Mutex
	seen  map[string]bool // the names of commands
	conns []net.Conn
	all   sync.WaitGroup
}

func startProxy(t testing.TB, upstream string, handle func(value, func() (value, error)) (value, error)) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{upstream: upstream, listener: l, handle: handle}
	p.all.Go(p.accept)
	t.Cleanup(p.stop)
	return p
}

func (p *proxy) url() string { return "redis://" + p.listener.Addr().String() }

func (p *proxy) stop() {
	_ = p.listener.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.upstream)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		p.all.Go(func() {
			defer client.Close()
			defer server.Close()
			_ = p.serve(client, server) // ends when either closes
		})
	}
}

func (p *proxy) serve(client, server net.Conn) error {
	in, out := bufio.NewReaderSize(client, 1<<16), bufio.NewReaderSize(server, 1<<16)
	var answer []byte
	for {
		if in.Buffered() == 0 {
			// All that was asked is answered: what comes now is another turn.
			for drip := p.drip.Load(); drip != nil; {
				step, pause := (*drip)()
				if len(answer) <= step {
					break
				}
				if _, err := client.Write(answer[:step]); err != nil {
					return err
				}
				answer = answer[step:]
				time.Sleep(pause)
			}
			if _, err := client.Write(answer); err != nil {
				return err
			}
			answer = nil
			if _, err := in.Peek(1); err != nil {
				return err
			}
			p.turns.Add(1)
		}
		command, err := readValue(in)
		if err != nil {
			return err
		}
		forward := func() (value, error) {
			if _, err := server.Write(command.append(nil)); err != nil {
				return value{}, err
			}
			return readValue(out)
		}
		p.mu.Lock()
		if p.seen == nil {
			p.seen = make(map[string]bool)
		}
		p.seen[command.name()] = true
		p.mu.Unlock()
		var reply value
		if p.handle != nil {
			reply, err = p.handle(command, forward)
		} else {
			reply, err = forward()
		}
		if err != nil {
			return err
		}
		answer = reply.append(answer)
	}
}

// saw reports whether a command of that name came.
func (p *proxy) saw(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[name]
}

// name is that of a command.
func (v value) name() string {
	if len(v.items) == 0 {
		return ""
	}
	return strings.ToUpper(v.items[0].text)
}
