package sandbox

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// served is the order in which files get a slot, each for a good second, when they come
// one after the other; the tenant stands ahead of a space.
func served(t *testing.T, slots int, files ...string) (order []string) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{free: slots}
		var mu sync.Mutex
		for i, file := range files {
			tenant, _, _ := strings.Cut(file, " ")
			go func() {
				if err := q.enter(t.Context(), tenant, 1, 1000); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, file)
				mu.Unlock()
				time.Sleep(time.Second + time.Duration(i)*time.Millisecond) // no two end at once
				q.leave(tenant)
			}()
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if q.free != slots || len(q.lines) > 0 || q.waiting != 0 {
			t.Errorf("left behind: %+v", q)
		}
	})
	return order
}

func TestATenantsSingleFileDoesNotWaitBehindAllOfAnother(t *testing.T) {
	var files []string
	for i := range 50 {
		files = append(files, "busy "+strconv.Itoa(i))
	}
	files = append(files, "other", "third 1", "third 2")
	for slots, want := range map[int][]string{
		1: {"busy 0", "other", "third 1", "busy 1", "third 2", "busy 2"},
		2: {"busy 0", "busy 1", "other", "third 1", "busy 2", "third 2", "busy 3"},
	} {
		if got := served(t, slots, files...); len(got) != len(files) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("%d slots: got %q", slots, got)
		}
	}
}

func TestWhatWaitsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		ctx, cancel := context.WithCancel(t.Context())
		enter := func(tenant string, size int64) error {
			now := make(chan error, 1)
			go func() { now <- q.enter(ctx, tenant, size, 100) }()
			synctest.Wait()
			select {
			case err := <-now:
				return err
			default:
				return nil // it waits
			}
		}
		for _, c := range []struct {
			tenant string
			size   int64
			want   error
		}{
			{"a", 49, nil},
			{"a", 2, ErrTenantBusy},
			{"a", 1, nil},
			{"b", 51, ErrBusy},
			{"b", 50, nil},
			{"c", 1, ErrBusy},
		} {
			if err := enter(c.tenant, c.size); !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%s, %d bytes: got %v, want %v", c.tenant, c.size, err, c.want)
			}
		}
		if errors.Is(ErrBusy, ErrTenantBusy) || !errors.Is(ErrTenantBusy, ErrBusy) {
			t.Error("the errors are not told apart")
		}
		cancel()
		synctest.Wait()
		if len(q.lines) > 0 || q.waiting != 0 {
			t.Errorf("left behind: %+v", q)
		}
	})
}

func TestAFileThatIsTooLargeForTheQueueWaitsAlone(t *testing.T) {
	if got := served(t, 1, "a 1"); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	q := &queue{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.enter(ctx, "a", 1, 100); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := q.add("a", &ticket{size: 400}, 100); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestPatienceGrowsWithAFileUpToABound(t *testing.T) {
	for size, want := range map[int]time.Duration{
		0: DefaultPatience, 1 << 20: DefaultPatience * 3 / 2, 60 << 20: MaxPatience, 1 << 30: MaxPatience,
	} {
		if got := new(Reader).patience(size); got != want {
			t.Errorf("%d bytes: got %v, want %v", size, got, want)
		}
	}
	if got := (&Reader{Patience: time.Hour}).patience(9 << 20); got != time.Hour {
		t.Errorf("got %v", got)
	}
}
