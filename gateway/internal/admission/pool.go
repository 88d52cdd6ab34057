package admission

import (
	"errors"
	"sync"
)

var (
	// ErrFull says that nothing is left, whoever holds it.
	ErrFull = errors.New("there is no room at the moment")
	// ErrShare says that the tenant holds its share.
	ErrShare = errors.New("the tenant holds its share")
)

// Pool is something of which there is only so much, such as memory, and which
// tenants hold for a while.
//
// A tenant may hold no more than is left for the others. One that is alone may so
// hold half, two may hold a third each, and there is always room for one that
// comes new. Nobody has to be told how many tenants there are.
type Pool struct {
	mu    sync.Mutex
	limit int64
	taken int64
	held  map[string]int64 // by tenant; none that hold nothing
}

// NewPool makes a pool of which limit may be taken.
func NewPool(limit int64) *Pool { return &Pool{limit: limit, held: map[string]int64{}} }

// Resize changes how much may be taken. What is held beyond it stays.
func (p *Pool) Resize(limit int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = limit
}

// Take takes n for a tenant. It fails with ErrFull or ErrShare.
func (p *Pool) Take(tenant string, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.limit - p.taken
	if n > free {
		return ErrFull
	}
	if p.held[tenant]+n > free {
		return ErrShare
	}
	p.taken += n
	p.held[tenant] += n
	return nil
}

// Give gives back what Take has taken.
func (p *Pool) Give(tenant string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= n
	if p.held[tenant] -= n; p.held[tenant] <= 0 {
		delete(p.held, tenant)
	}
}

// Taken is how much is taken.
func (p *Pool) Taken() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// Claim is what one request holds of a pool. It grows, and is released whole. It
// is for one goroutine at a time.
type Claim struct {
	pool   *Pool
	tenant string
	free   int64
	held   int64
}

// Claim begins a claim that holds nothing yet. What doesn't exceed free isn't
// counted.
func (p *Pool) Claim(tenant string, free int64) *Claim {
	return &Claim{pool: p, tenant: tenant, free: free}
}

// Grow makes the claim one of n, where it is less. It fails with ErrFull or
// ErrShare, and then holds what it held.
func (c *Claim) Grow(n int64) error {
	if n <= c.free || n <= c.held {
		return nil
	}
	if err := c.pool.Take(c.tenant, n-c.held); err != nil {
		return err
	}
	c.held = n
	return nil
}

// Release gives back what the claim holds.
func (c *Claim) Release() {
	if c.held > 0 {
		c.pool.Give(c.tenant, c.held)
		c.held = 0
	}
}
