package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

func saveOne(s *Store, session, id string) error {
	_, err := s.Append(context.Background(), store.Append{Scope: of("a"), Session: session, Exchange: sample(id), Anyway: true})
	return err
}

func TestSavesGoAheadOfAnUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{steps: []*job{{step: true, added: time.Now()}}, saves: []*job{{added: time.Now()}, {added: time.Now()}}}
		time.Sleep(starved / 2)
		if group, _ := q.take(); len(group) != 2 || group[0].step {
			t.Error("the step went ahead of the saves")
		}
		if group, _ := q.take(); len(group) != 1 || !group[0].step {
			t.Error("the step wasn't next")
		}
	})
}

func TestAnUploadGoesOnThoughSavesNeverLetUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		q.steps = append(q.steps, &job{step: true, added: time.Now()})
		steps := 0
		for range 100 {
			q.saves = append(q.saves, &job{added: time.Now()})
			group, _ := q.take()
			if group[0].step {
				steps++
				q.steps = append(q.steps, &job{step: true, added: time.Now()})
				time.Sleep(stepTime)
			} else {
				time.Sleep(time.Millisecond)
			}
			q.did(group)
		}
		if steps < 2 || steps > 4 {
			t.Errorf("%d steps came among 100 transactions of 1 ms, want one in %v", steps, starved)
		}
	})
}

// A step's time doesn't depend on how much there is to add: a save that comes
// now waits for one step.
func TestAnUploadIsAddedInSteps(t *testing.T) {
	s := temporary(t)
	begin(t, s, "f1", 1)
	before := s.writer.queue.began.Load()
	const n = 3000
	if err := s.AddChunks(context.Background(), of("a"), "f1", chunks(n)); err != nil {
		t.Fatal(err)
	}
	if steps := s.writer.queue.began.Load() - before; steps < 2 {
		t.Errorf("%d chunks were added in %d steps", n, steps)
	}
	f, err := s.File(context.Background(), of("a"), "f1")
	if err != nil || f.Chunks != n+1 {
		t.Errorf("the file has %d chunks, %v", f.Chunks, err)
	}
	sound(t, s)
}

func TestASaveOutlastsItsDeadlineWhileTheWriterGetsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{wake: make(chan struct{}, 1)}
		ctx, cancel := context.WithTimeout(t.Context(), hangs)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- q.do(ctx, &job{run: func(*conn) error { return nil }}) }()
		synctest.Wait()
		for range 10 { // transactions of others, each shorter than what is taken for a hang
			time.Sleep(hangs * 3 / 4)
			q.began.Add(1)
		}
		group, _ := q.take()
		if len(group) != 1 {
			t.Fatalf("it has given up: %v", <-done)
		}
		close(group[0].done)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestASaveGivesUpWhereTheWriterHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{wake: make(chan struct{}, 1)}
		ctx, cancel := context.WithTimeout(t.Context(), hangs)
		defer cancel()
		began := time.Now()
		if err := q.do(ctx, &job{}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 3*hangs {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestTheBacklogIsThatOfSaves(t *testing.T) {
	s := temporary(t)
	if d := s.WriteBacklog(); d != 0 {
		t.Errorf("with nothing to write: %v", d)
	}
	release := s.writer.hold(t)
	done := make(chan error, 2)
	go func() { done <- s.writer.step(context.Background(), func(*conn) error { return nil }) }()
	s.writer.queued(1)
	if d := s.WriteBacklog(); d != 0 {
		t.Errorf("while a step waits: %v", d)
	}
	go func() { done <- saveOne(s, "s", "e1") }()
	s.writer.queued(2)
	first := s.WriteBacklog()
	if second := s.WriteBacklog(); first <= 0 || second <= first {
		t.Errorf("while a save waits: %v, and later %v", first, second)
	}
	release()
	if err := errors.Join(<-done, <-done); err != nil {
		t.Error(err)
	}
	if d := s.WriteBacklog(); d != 0 {
		t.Errorf("when all is written: %v", d)
	}
}

// BenchmarkAppendBesideAnUpload is how long saves take while chunks are added.
func BenchmarkAppendBesideAnUpload(b *testing.B) {
	s := benchmark(b, Options{})
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 20)
	list := chunks(5000)
	for i := range list {
		list[i].Text, list[i].Terms, list[i].Vector = text, fmt.Sprint(text, i), make([]float32, 1024)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ctx.Err() == nil; i++ {
			id := fmt.Sprint("f", i)
			if _, err := s.CreateFile(ctx, of("b"), store.File{ID: id, Name: id, Digest: [32]byte{byte(i)}}, strings.NewReader("")); err == nil {
				_ = s.AddChunks(ctx, of("b"), id, list)
			}
		}
	}()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		add(b, s, "s", fmt.Sprint("e", i))
		took = append(took, time.Since(began))
	}
	var n int
	if err := s.row(context.Background(), `SELECT sum(chunks) FROM tenants`).Scan(&n); err != nil {
		b.Fatal(err)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-longest")
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "chunks/s")
	cancel()
	<-stopped
}
