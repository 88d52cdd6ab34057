package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	bin := flag.String("bin", "./backstory", "the program that is tried")
	rounds := flag.Int("rounds", 4, "how often each fault happens")
	clients := flag.Int("clients", 16, "how many chat at once")
	only := flag.String("only", "", "only faults and stores whose names contain this")
	soak := flag.Duration("soak", 0, "break nothing, and watch the program under load for so long")
	flag.Parse()
	endOnSignal()
	err := run(*bin, *rounds, *clients, *only, *soak)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(bin string, rounds, clients int, only string, length time.Duration) error {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		return fmt.Errorf("the faults of Redis need redis-server: %w", err)
	}
	dir, err := os.MkdirTemp("", "backstory-faults-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if length > 0 {
		return soak(bin, dir, clients, length)
	}
	return trials(bin, dir, rounds, clients, only)
}

// row is a line of the table: one fault on one store.
type row struct {
	store, fault string
	rounds       int
	counts
	recovery []time.Duration
	wrong    int64 // replies that a client should not get
	example  string
}

func trials(bin, dir string, rounds, clients int, only string) error {
	stores := []struct {
		name   string
		make   func(bin, dir string) (*site, error)
		faults []fault
	}{
		{"SQLite", embedded, slices.Concat(always, withDisk)},
		{"Redis", onRedis, slices.Concat(always, withRedis)},
		{"Redis, Sentinel", replicated, withReplica},
	}
	var rows []*row
	for i, store := range stores {
		faults := slices.DeleteFunc(slices.Clone(store.faults), func(f fault) bool {
			return !strings.Contains(store.name+": "+f.name, only)
		})
		if len(faults) == 0 {
			continue
		}
		home := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(home, 0o700); err != nil {
			return err
		}
		s, err := store.make(bin, home)
		if err != nil {
			return err
		}
		if i == 0 && s.disk == nil {
			fmt.Println("No file system can be mounted here: the disk isn't filled.")
			faults = slices.DeleteFunc(faults, func(f fault) bool { return strings.Contains(f.name, "disk") })
		}
		done, err := s.trial(store.name, faults, rounds, clients)
		s.end()
		rows = append(rows, done...)
		if err != nil {
			_ = report(rows)
			return fmt.Errorf("%s: %w", store.name, err)
		}
	}
	return report(rows)
}

// trial lets each fault happen so many times.
func (s *site) trial(store string, faults []fault, rounds, clients int) ([]*row, error) {
	if err := s.start(); err != nil {
		return nil, err
	}
	var rows []*row
	for _, f := range faults {
		r := &row{store: store, fault: f.name}
		rows = append(rows, r)
		for range rounds {
			if err := s.round(f, r, clients); err != nil {
				return rows, fmt.Errorf("%s: %w", f.name, err)
			}
		}
	}
	return rows, nil
}

// round lets a fault happen while clients chat, and counts what became of what
// they said.
func (s *site) round(f fault, r *row, clients int) error {
	const undisturbed = 500 * time.Millisecond
	l := s.chat(clients, fmt.Sprintf("%s-%d", strings.ReplaceAll(f.name, " ", "-"), r.rounds), 0)
	r.rounds++
	time.Sleep(undisturbed)
	err := f.do(s)
	if err == nil {
		var took time.Duration
		took, err = s.recover(l)
		r.recovery = append(r.recovery, took)
		time.Sleep(undisturbed)
	}
	l.halt()
	if r.wrong += l.wrong.Load(); l.wrong.Load() > 0 {
		r.example = l.lastErr.Load().(string)
	}
	if err != nil {
		return err
	}
	if err := s.drained(); err != nil {
		return err
	}
	for _, one := range l.sessions {
		stored, err := l.messages(one.id)
		if err != nil {
			return err
		}
		r.add(check(one, stored))
	}
	return nil
}

// report prints the table. It is an error if an exchange was lost, doubled, torn or
// out of order, or if a client got a reply that it should not.
func report(rows []*row) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "store\tfault\trounds\tacknowledged\tfound\tlost\tdoubled\ttorn\tout of order\ttold\ttold, kept\trefused\tfailed\trecovered after\tat most\t")
	var all counts
	var wrong int64
	n := 0
	for _, r := range rows {
		slices.Sort(r.recovery)
		var median, most time.Duration
		if len(r.recovery) > 0 {
			median, most = r.recovery[len(r.recovery)/2], r.recovery[len(r.recovery)-1]
		}
		line(w, r.store, r.fault, r.rounds, r.counts, fmt.Sprintf("%.2f s", median.Seconds()), fmt.Sprintf("%.2f s", most.Seconds()))
		all.add(r.counts)
		n += r.rounds
		wrong += r.wrong
	}
	line(w, "all", "", n, all, "", "")
	w.Flush()
	for _, r := range rows {
		if r.wrong > 0 {
			fmt.Printf("%s, %s: %d replies that no client should get, such as %s\n", r.store, r.fault, r.wrong, r.example)
		}
	}
	if all.bad() > 0 || wrong > 0 {
		return fmt.Errorf("%d exchanges and %d replies were not as promised", all.bad(), wrong)
	}
	return nil
}

func line(w *tabwriter.Writer, store, fault string, rounds int, c counts, median, most string) {
	fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t\n", store, fault, rounds,
		c.acknowledged, c.found, c.lost, c.doubled, c.torn, c.disordered, c.told, c.toldKept, c.refused, c.failed, median, most)
}
