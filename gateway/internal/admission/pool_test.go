package admission

import (
	"errors"
	"testing"
)

func TestATenantHoldsNoMoreThanIsLeftForTheOthers(t *testing.T) {
	t.Parallel()
	p := NewPool(12)
	fill := func(tenant string) (n int64) {
		for p.Take(tenant, 1) == nil {
			n++
		}
		return n
	}
	if n := fill("a"); n != 6 {
		t.Errorf("alone a tenant gets %d of 12, want half", n)
	}
	if n := fill("b"); n != 3 {
		t.Errorf("a second one gets %d, want half of what is left", n)
	}
	if err := p.Take("a", 1); !errors.Is(err, ErrShare) {
		t.Errorf("the first one gets more: %v", err)
	}
	if err := p.Take("c", 1); err != nil {
		t.Errorf("a third one gets nothing: %v", err)
	}
	if err := p.Take("c", 5); !errors.Is(err, ErrFull) {
		t.Errorf("more than there is: %v", err)
	}
	p.Give("a", 6)
	if n := fill("b"); n != 3 {
		t.Errorf("the second one then gets %d more", n)
	}
	if p.Give("b", p.held["b"]); p.Taken() != 1 || len(p.held) != 1 {
		t.Errorf("%d taken by %d tenants after all but one has ended", p.Taken(), len(p.held))
	}
}

func TestAClaimHoldsWhatItHasGrownTo(t *testing.T) {
	t.Parallel()
	p := NewPool(100)
	c := p.Claim("a", 10)
	for _, step := range []struct{ to, taken int64 }{{10, 0}, {11, 11}, {40, 40}, {20, 40}} {
		if err := c.Grow(step.to); err != nil || p.Taken() != step.taken {
			t.Errorf("grown to %d: %v, %d taken, want %d", step.to, err, p.Taken(), step.taken)
		}
	}
	if err := c.Grow(61); !errors.Is(err, ErrShare) || p.Taken() != 40 {
		t.Errorf("beyond its share: %v, %d taken", err, p.Taken())
	}
	c.Release()
	c.Release()
	if p.Taken() != 0 {
		t.Errorf("%d taken after the claim was released", p.Taken())
	}
}
