// Package porttest gives tests ports for servers that can't be told to choose a
// free one themselves.
package porttest

import (
	"errors"
	"net"
	"strconv"
	"sync"
)

// Ports come in blocks. A process holds a block by listening on its first port
// until it ends, so that no two test processes have the same. All are below those
// that systems give to outgoing connections, from 32768 on Linux and 49152
// elsewhere.
const (
	lowest  = 12_000
	highest = 32_000
	block   = 200
)

var (
	mu   sync.Mutex
	next int
	end  int
	held []net.Listener // kept, for a listener nobody refers to is closed
)

// Next returns a port of 127.0.0.1 that no call has returned before, in this
// process or one that runs at the same time, and that nobody listens on.
func Next() (int, error) {
	mu.Lock()
	defer mu.Unlock()
	for {
		for next == end {
			if err := hold(); err != nil {
				return 0, err
			}
		}
		port := next
		next++
		if l, err := listen(port); err == nil {
			return port, l.Close()
		}
	}
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// hold takes a block that no process has.
func hold() error {
	for first := max(lowest, end); first < highest; first += block {
		l, err := listen(first)
		if err != nil {
			continue
		}
		held = append(held, l)
		next, end = first+1, first+block
		return nil
	}
	return errors.New("all ports for tests are in use")
}
