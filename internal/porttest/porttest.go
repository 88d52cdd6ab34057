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
// process or one that runs at the same time. A program that isn't a test may
// listen on it; within 20,000 ports, few are.
func Next() (int, error) {
	mu.Lock()
	defer mu.Unlock()
	for next == end {
		if err := hold(); err != nil {
			return 0, err
		}
	}
	next++
	return next - 1, nil
}

// hold takes a block that no process has.
func hold() error {
	for first := max(lowest, end); first < highest; first += block {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first)))
		if err != nil {
			continue
		}
		held = append(held, l)
		next, end = first+1, first+block
		return nil
	}
	return errors.New("all ports for tests are in use")
}
