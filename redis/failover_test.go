package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

const (
	writers    = 8
	sessions   = 6 // of each writer
	memberDead = time.Second
	// pace is that of a writer: what is of interest is a failover under load,
	// not how much load there can be.
	pace = 4 * time.Millisecond
	// enough appends are acknowledged before the kill, and again afterwards;
	// enoughThere of the latter in the slots of the server that was killed.
	enough, enoughThere = 400, 120
	// justBefore the kill an exchange may have been acknowledged that is lost.
	justBefore = time.Second
)

// A primary of a Cluster is killed under load, and its replica takes over.
func TestFailover(t *testing.T) {
	for _, test := range []struct {
		name string
		wait int
		// cut says that the replica has lost its primary just before.
		cut bool
	}{
		{"without wait_replicas", 0, false},
		{"without wait_replicas, the replica cut off", 0, true},
		{"with wait_replicas 1", 1, false},
		{"with wait_replicas 1, the replica cut off", 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := startFailover(t, test.wait)
			f.write()
			f.await("appends", func() bool { return f.acknowledged.Load() >= enough })
			since := f.kill(test.cut)
			f.replace()
			f.checkIdle()
			before, beforeThere := f.acknowledged.Load(), f.acknowledgedThere.Load()
			f.await("appends after the failover", func() bool {
				return f.acknowledged.Load() >= before+enough && f.acknowledgedThere.Load() >= beforeThere+enoughThere
			})
			f.finish()
			lost := f.count(since)
			switch {
			case test.wait > 0 && lost > 0:
				t.Errorf("%d exchanges are lost that a replica had confirmed", lost)
			case test.wait == 0 && test.cut && lost == 0:
				t.Error("nothing is lost of what no replica had: this test can't see a loss")
			}
		})
	}
}

// failover is a Cluster that loses a primary, and those who write to it.
type failover struct {
	*testing.T
	store *Store
	// idle is that of another proxy, which has nothing to do meanwhile.
	idle        *Store
	idleSession string
	members     []*server
	// victim is the primary that is killed, heir its replica.
	victim, heir *server
	writers      [writers]writer

	// acknowledged counts appends, acknowledgedThere those to the victim's
	// slots, and endedThere those that failed, too.
	acknowledged, acknowledgedThere, endedThere atomic.Int64

	stop chan struct{}
	once sync.Once
	all  sync.WaitGroup
}

// writer appends to its sessions in turn.
type writer struct {
	tenant   string
	sessions [sessions]struct {
		name    string
		there   bool // in the victim's slots
		appends []appended
	}
}

// appended is what was told of an append.
type appended struct {
	id string
	at time.Time // it was acknowledged; zero: it failed
}

func startFailover(t *testing.T, wait int) *failover {
	f := &failover{T: t, members: startPrimaries(t, 3, memberDead), stop: make(chan struct{})}
	url := clusterURL(f.members)
	f.victim = f.members[1]
	for _, primary := range f.members {
		replica := startReplica(t, primary, memberDead, f.members)
		if f.members = append(f.members, replica); primary == f.victim {
			f.heir = replica
		}
	}
	awaitCluster(t, f.members)
	o := Options{Prefix: newPrefix(), WaitReplicas: wait, WaitTimeout: 100 * time.Millisecond, unindexed: true}
	f.store, f.idle = openAt(t, url, o), openAt(t, url, o)
	for i := range f.writers {
		w := &f.writers[i]
		w.tenant = fmt.Sprint("tenant", i)
		for j := range w.sessions {
			s := &w.sessions[j]
			s.name = fmt.Sprint("session", j)
			s.there = f.owner(w.tenant, s.name) == f.victim.addr()
		}
	}
	for i := 0; f.idleSession == "" || f.owner("idle", f.idleSession) != f.victim.addr(); i++ {
		f.idleSession = fmt.Sprint("session", i)
	}
	return f
}

// owner returns the address of the server that the store takes for a session's.
func (f *failover) owner(tenant, session string) string {
	key := f.store.layout.tagged(sessionKey, sessionTag(of(tenant), session))
	c, err := f.store.client.(*goredis.ClusterClient).MasterForKey(context.Background(), key)
	if err != nil {
		f.Fatal(err)
	}
	return c.Options().Addr
}

func (f *failover) write() {
	for i := range f.writers {
		// Half of them try again what failed, as often as a few times.
		f.all.Go(func() { f.writeOne(&f.writers[i], 1+i%2*3) })
	}
	f.Cleanup(f.finish) // before the store is closed
}

func (f *failover) writeOne(w *writer, tries int) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := 0; ; n++ {
		s := &w.sessions[n%sessions]
		a := appended{id: fmt.Sprint(w.tenant, "-", n)}
		for try := 0; try < tries && a.at.IsZero(); try++ {
			select {
			case <-f.stop:
				return
			case <-tick.C:
			}
			if f.append(f.store, w.tenant, s.name, a.id) == nil {
				a.at = time.Now()
			}
		}
		s.appends = append(s.appends, a)
		if !a.at.IsZero() {
			f.acknowledged.Add(1)
		}
		if s.there {
			f.endedThere.Add(1)
			if !a.at.IsZero() {
				f.acknowledgedThere.Add(1)
			}
		}
	}
}

func (f *failover) append(s *Store, tenant, session, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := s.Append(ctx, store.Append{Scope: of(tenant), Session: session, Exchange: written(id), Anyway: true})
	return err
}

// written is an exchange that shows whether all of it is there.
func written(id string) store.Exchange {
	e := sample(id)
	for i := range 3 {
		e.Messages = append(e.Messages, store.Message{JSON: fmt.Appendf(nil, `{"role":"tool","content":"%s %d"}`, id, i), Tokens: 10 + i})
	}
	return e
}

func (f *failover) await(what string, done func() bool) {
	f.Helper()
	eventually(f, what, func(context.Context) (bool, error) { return done(), nil })
}

// kill kills the victim, and returns the time since when a replica may have
// missed what was acknowledged.
func (f *failover) kill(cut bool) time.Time {
	since := time.Now()
	if cut {
		// It can't come back while it is stopped.
		f.signal(f.heir, syscall.SIGSTOP)
		if err := f.victim.client(f).Do(context.Background(), "CLIENT", "KILL", "TYPE", "replica").Err(); err != nil {
			f.Fatal(err)
		}
		ended := f.endedThere.Load()
		f.await("appends without the replica", func() bool { return f.endedThere.Load() >= ended+20 })
	} else {
		since = since.Add(-justBefore)
	}
	f.victim.stop()
	if cut {
		f.signal(f.heir, syscall.SIGCONT)
	}
	return since
}

func (f *failover) signal(s *server, signal syscall.Signal) {
	if err := s.process.Process.Signal(signal); err != nil {
		f.Fatal(err)
	}
}

// replace gives the heir a replica of its own, once it is the primary, and
// waits until everybody knows.
func (f *failover) replace() {
	c := f.heir.client(f)
	eventually(f, "the replica takes over", func(ctx context.Context) (bool, error) {
		role, err := c.Do(ctx, "ROLE").Slice()
		return err == nil && role[0] == "master", err
	})
	f.members = slices.DeleteFunc(f.members, func(s *server) bool { return s == f.victim })
	f.members = append(f.members, startReplica(f.T, f.heir, memberDead, f.members))
	awaitCluster(f.T, f.members)
}

// checkIdle appends where a proxy still takes the dead server for the owner. The
// new owner answers, be its replica late: at the first try, unless the machine is
// too busy for it to be asked for meanwhile, and long before go-redis by itself
// would ask, within a minute.
func (f *failover) checkIdle() {
	for until := time.Now().Add(10 * time.Second); ; {
		err := f.append(f.idle, "idle", f.idleSession, "e")
		if err == nil || errors.Is(err, errTooFewReplicas) {
			return
		}
		if time.Now().After(until) {
			f.Errorf("a proxy that was idle doesn't find the new primary: %v", err)
			return
		}
	}
}

func (f *failover) finish() {
	f.once.Do(func() { close(f.stop) })
	f.all.Wait()
}

// count reads all sessions back, and returns how many of the exchanges that were
// acknowledged aren't there. Those must be the last before the kill.
func (f *failover) count(since time.Time) (lost int) {
	var tried, found, failed, failedFound int
	for i := range f.writers {
		w := &f.writers[i]
		for j := range w.sessions {
			s := &w.sessions[j]
			there := f.read(w.tenant, s.name)
			tried, found = tried+len(s.appends), found+len(there)
			place, gone, back := -1, false, false
			for _, a := range s.appends {
				at, ok := there[a.id]
				switch {
				case a.at.IsZero():
					failed++
					if ok {
						failedFound++
					}
					continue
				case !ok:
					lost++
					if !s.there || a.at.Before(since) || back {
						f.Errorf("%s of %s is lost, acknowledged %v after the replica may have missed it; its server was killed: %t; what came later is there: %t",
							a.id, s.name, a.at.Sub(since), s.there, back)
					}
					gone = true
					continue
				case at < place:
					f.Errorf("%s of %s has place %d, after one with place %d", a.id, s.name, at, place)
				}
				place, back = at, gone
			}
		}
	}
	f.Logf("%d appends: %d acknowledged, %d found, %d lost; %d failed, of which %d are there",
		tried, tried-failed, found, lost, failed, failedFound)
	return lost
}

// read returns the places of a session's exchanges, each of which must be whole
// and there once, and the session's own figures must be theirs.
func (f *failover) read(tenant, session string) map[string]int {
	ctx := context.Background()
	list, err := f.store.Exchanges(ctx, of(tenant), session, 0, 1<<20, store.Ascending)
	if err != nil {
		f.Fatal(err)
	}
	places := make(map[string]int)
	var messages, tokens int64
	for i := range list {
		e, want := &list[i], written(list[i].ID)
		if _, twice := places[e.ID]; twice {
			f.Errorf("%s of %s is there twice", e.ID, session)
		}
		places[e.ID] = i
		whole := slices.EqualFunc(e.Messages, want.Messages, func(a, b store.Message) bool {
			return string(a.JSON) == string(b.JSON) && a.Tokens == b.Tokens && a.Digest == b.Digest
		})
		if !whole || e.Seq != int64(i+1) || e.Offset != tokens {
			f.Errorf("%s of %s is torn: %d messages, place %d, Seq %d, Offset %d instead of %d",
				e.ID, session, len(e.Messages), i, e.Seq, e.Offset, tokens)
		}
		messages, tokens = messages+int64(len(e.Messages)), tokens+int64(e.Tokens())
	}
	d, err := f.store.Session(ctx, of(tenant), session)
	if err != nil || d.Messages != messages || d.Tokens != tokens {
		f.Errorf("%s says that it has %d messages and %d tokens (%v), and has %d and %d", session, d.Messages, d.Tokens, err, messages, tokens)
	}
	return places
}
