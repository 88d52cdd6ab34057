package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A server that hangs takes connections and answers nothing: each request would
// wait for it as long as a connection does, and hold that meanwhile. A watch makes
// the connections to all servers, and knows by what goes over them when a server
// was last heard of. One that was asked, and not heard of on any connection for as
// long as an answer may take, is held to hang: what would be sent to it fails at
// once, until it answers a question of the watch's own. No request is spent on
// finding out, and none waits for more than one that began before.
//
// A circuit breaker from a library counts calls that failed, of which some fail
// for reasons of their own, and lets calls through to try; and it stands before
// the client, which tries again behind it.
type watch struct {
	ctx      context.Context // that of the store
	dialer   net.Dialer
	tls      *tls.Config // nil: in the clear
	patience time.Duration
	notify   func(Event)

	mu      sync.Mutex
	servers map[string]*watched
}

const (
	// probePause is between two questions to a server that hangs. Each waits
	// for an answer itself.
	probePause = 250 * time.Millisecond
	// benefit of the doubt is how long what is to be sent waits for the answer
	// to the first question. A connection that a firewall has forgotten looks
	// like a server that hangs.
	benefit = 100 * time.Millisecond
)

// errHangs is the answer in place of that of a server that gives none.
var errHangs = errors.New("the server has stopped answering; it will be used again when it does")

func newWatch(ctx context.Context, tlsConfig *tls.Config, o Options) *watch {
	return &watch{
		ctx: ctx, tls: tlsConfig, patience: o.Timeout, notify: o.notify, servers: make(map[string]*watched),
		dialer: net.Dialer{Timeout: o.DialTimeout, KeepAlive: 5 * time.Minute},
	}
}

// server is what is known of the one at an address.
func (w *watch) server(addr string) *watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.servers[addr]
	if s == nil {
		s = &watched{watch: w, addr: addr}
		w.servers[addr] = s
	}
	return s
}

// dial makes a connection for the go-redis client.
func (w *watch) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	s := w.server(addr)
	if err := s.usable(); err != nil {
		return nil, err
	}
	begun := time.Now()
	conn, err := w.connect(ctx, network, &watchedConn{server: s})
	if isTimeout(err) {
		s.silentSince(begun, min(w.patience, w.dialer.Timeout))
	}
	return conn, err
}

// connect connects c, which names its server, and puts TLS on top.
func (w *watch) connect(ctx context.Context, network string, c *watchedConn) (net.Conn, error) {
	var err error
	if c.Conn, err = w.dialer.DialContext(ctx, network, c.server.addr); err != nil {
		return nil, err
	}
	if w.tls == nil {
		return c, nil
	}
	config := w.tls
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(c.server.addr)
	}
	ctx, cancel := context.WithTimeout(ctx, w.dialer.Timeout)
	defer cancel()
	secure := tls.Client(c, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return secure, nil
}

// watched is one server.
type watched struct {
	watch *watch
	addr  string
	heard atomic.Int64            // when a byte came from it last, in ns
	hangs atomic.Pointer[silence] // nil: not that anyone knew
}

// silence is a time during which a server hangs.
type silence struct {
	doubt chan struct{} // closed when there is none any more

	mu          sync.Mutex
	over, known bool
}

// usable waits out the doubt, and refuses a server that hangs.
func (s *watched) usable() error {
	now := s.hangs.Load()
	if now == nil {
		return nil
	}
	<-now.doubt
	if s.hangs.Load() != nil {
		return errHangs
	}
	return nil
}

// silentSince takes in that an answer was waited for in vain. That is the
// connection's own affair where others have heard of the server, or where the
// request had little time.
func (s *watched) silentSince(asked time.Time, patience time.Duration) {
	last := max(asked.UnixNano(), s.heard.Load())
	if time.Since(time.Unix(0, last)) < patience-timerSlack {
		return
	}
	now := &silence{doubt: make(chan struct{})}
	if s.hangs.CompareAndSwap(nil, now) {
		time.AfterFunc(benefit, func() { s.believe(now) })
		go s.await(now)
	}
}

// believe ends the doubt.
func (s *watched) believe(now *silence) {
	now.mu.Lock()
	defer now.mu.Unlock()
	if now.over || s.watch.ctx.Err() != nil {
		return
	}
	now.known = true
	close(now.doubt)
	s.watch.notify(Event{What: Hangs, Server: s.addr})
}

// await asks the server until it answers, or refuses to: what it refuses fails at
// once as it is.
func (s *watched) await(now *silence) {
	for {
		if err := s.probe(); !isTimeout(err) {
			break
		}
		select {
		case <-s.watch.ctx.Done():
		case <-time.After(probePause):
			continue
		}
		break
	}
	now.mu.Lock()
	defer now.mu.Unlock()
	now.over = true
	s.hangs.Store(nil)
	if now.known {
		s.watch.notify(Event{What: Answers, Server: s.addr})
	} else {
		close(now.doubt)
	}
}

// probe asks the server for a sign of life, on a connection of its own. One that
// wants a password first is alive.
func (s *watched) probe() error {
	conn, err := s.watch.connect(s.watch.ctx, "tcp", &watchedConn{server: s, probes: true})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(s.watch.patience)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// watchedConn is a connection to a watched server, below TLS. Its deadlines bound
// how long the server is silent, not how long a large command or answer takes, as
// far as they leave the server its time.
type watchedConn struct {
	net.Conn
	server *watched
	probes bool // it is the watch's own

	asked  atomic.Int64 // when something was sent last, in ns
	reads  deadline
	writes deadline
}

// deadline is when one was set, in ns; 0 where it is not to be moved.
type deadline struct{ set atomic.Int64 }

func (d *deadline) take(t time.Time, patience time.Duration) {
	now := time.Now()
	if t.IsZero() || t.Sub(now) < patience-timerSlack {
		d.set.Store(0)
		return
	}
	d.set.Store(now.UnixNano())
}

// due reports whether it is time to move the deadline, because something has
// moved.
func (d *deadline) due(now time.Time, patience time.Duration) bool {
	set := d.set.Load()
	if set == 0 || now.UnixNano()-set < int64(patience/2) {
		return false
	}
	d.set.Store(now.UnixNano())
	return true
}

// SetDeadline is part of net.Conn.
func (c *watchedConn) SetDeadline(t time.Time) error {
	c.reads.take(t, c.server.watch.patience)
	c.writes.take(t, c.server.watch.patience)
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline is part of net.Conn.
func (c *watchedConn) SetReadDeadline(t time.Time) error {
	c.reads.take(t, c.server.watch.patience)
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline is part of net.Conn.
func (c *watchedConn) SetWriteDeadline(t time.Time) error {
	c.writes.take(t, c.server.watch.patience)
	return c.Conn.SetWriteDeadline(t)
}

// writeStep is how much is written until it is known that the server takes it.
const writeStep = 1 << 20

func (c *watchedConn) Write(p []byte) (int, error) {
	if !c.probes {
		if err := c.server.usable(); err != nil {
			return 0, err
		}
	}
	written := 0
	for {
		c.asked.Store(time.Now().UnixNano())
		n, err := c.Conn.Write(p[written:min(written+writeStep, len(p))])
		if written += n; err != nil {
			c.judge(err)
			return written, err
		}
		if written == len(p) {
			return written, nil
		}
		if now := time.Now(); c.writes.due(now, c.server.watch.patience) {
			if err := c.Conn.SetWriteDeadline(now.Add(c.server.watch.patience)); err != nil {
				return written, err
			}
		}
	}
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		now := time.Now()
		c.server.heard.Store(now.UnixNano())
		if c.reads.due(now, c.server.watch.patience) && err == nil {
			err = c.Conn.SetReadDeadline(now.Add(c.server.watch.patience))
		}
	}
	c.judge(err)
	return n, err
}

func (c *watchedConn) judge(err error) {
	if isTimeout(err) {
		c.server.silentSince(time.Unix(0, c.asked.Load()), c.server.watch.patience)
	}
}

// SyscallConn lets go-redis see, before it uses a connection again, whether the
// server has closed it.
func (c *watchedConn) SyscallConn() (syscall.RawConn, error) {
	raw, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return raw.SyscallConn()
}

// Interface guards
var (
	_ net.Conn     = (*watchedConn)(nil)
	_ syscall.Conn = (*watchedConn)(nil)
)
