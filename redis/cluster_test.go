package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/store/storetest"
)

// unsearched are the parts of the suite that a server without the search module
// can't pass.
var unsearched = []string{"Chunks", "Text", "Vector", "Recall", "Files", "Reembedding"}

// smoke runs what can be run of the suite without the search module, and a file
// from its upload to its removal.
func smoke(t *testing.T, url string, o Options) {
	o.unindexed = true
	b := backend(url, o)
	b.Without = unsearched
	storetest.Run(t, b)
	t.Run("a file comes and goes", func(t *testing.T) {
		o.Prefix = newPrefix()
		fileComesAndGoes(t, openAt(t, url, o))
	})
}

func fileComesAndGoes(t *testing.T, s *Store) {
	ctx := context.Background()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	content := make([]byte, 3<<20)
	for i := range content {
		content[i] = byte(i * i >> 7)
	}
	_, err := s.CreateFile(ctx, of("a"), store.File{ID: "f", Name: "n"}, bytes.NewReader(content))
	ok(err)
	chunks := make([]store.Chunk, 200)
	for i := range chunks {
		chunks[i] = store.Chunk{N: i, Text: fmt.Sprint("text ", i), Terms: "text", Vector: []float32{1, 0}}
	}
	ok(s.AddChunks(ctx, of("a"), "f", chunks))
	ok(s.FinishFile(ctx, of("a"), "f", store.FileProcessed, ""))
	hits, err := s.Chunks(ctx, of("a"), []store.ChunkRef{{FileID: "f", N: 199}, {FileID: "f", N: 0}})
	ok(err)
	if len(hits) != 2 || hits[0].Chunk.Text != "text 199" || hits[1].Chunk.Text != "text 0" {
		t.Errorf("got %+v", hits)
	}
	from, err := s.Content(ctx, of("a"), "f")
	ok(err)
	got, err := io.ReadAll(from)
	ok(err)
	ok(from.Close())
	if string(got) != string(content) {
		t.Error("the original isn't what it was")
	}
	ok(s.DeleteFile(ctx, of("a"), "f"))
	if left := keysLike(t, s, "*chunk*", "*blob*", "*file:*", "*gone*"); len(left) > 0 {
		t.Errorf("%d keys are left: %.200q", len(left), left)
	}
}

// keysLike lists a store's keys by patterns.
func keysLike(t *testing.T, s *Store, patterns ...string) []string {
	t.Helper()
	ctx := context.Background()
	var list []string
	look := func(ctx context.Context, c *goredis.Client) error {
		all := c.Scan(ctx, 0, "*", 1000).Iterator()
		for all.Next(ctx) {
			key, mine := strings.CutPrefix(all.Val(), s.opts.Prefix)
			for _, pattern := range patterns {
				if ok, _ := filepath.Match(pattern, key); ok && mine {
					list = append(list, key)
				}
			}
		}
		return all.Err()
	}
	var err error
	if cluster, ok := s.client.(*goredis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, look)
	} else {
		err = look(ctx, s.client.(*goredis.Client))
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestCluster(t *testing.T) {
	url := startCluster(t, 3)
	smoke(t, url, Options{})

	t.Run("an append that no replica confirms doesn't count as saved", func(t *testing.T) {
		s := openAt(t, url, Options{Prefix: newPrefix(), WaitReplicas: 1, WaitTimeout: 10 * time.Millisecond, unindexed: true})
		for range 2 { // the second time it is there already
			_, err := s.Append(context.Background(), store.Append{Scope: of("a"), Session: "s", Exchange: sample("e"), Usage: store.Used{Month: march, Tokens: 5}, Anyway: true})
			if !errors.Is(err, errTooFewReplicas) {
				t.Errorf("got %v", err)
			}
		}
		if n, err := s.Usage(context.Background(), of("a"), march); err != nil || n != 5 {
			t.Errorf("%d tokens were counted, %v; want 5", n, err)
		}
	})
}

// startCluster starts primaries that share the slots, and returns the URL of all.
func startCluster(t *testing.T, n int) string {
	servers := startPrimaries(t, n, 2*time.Second)
	awaitCluster(t, servers)
	return clusterURL(servers)
}

func clusterURL(servers []*server) string {
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.addr())
	}
	return "redis+cluster://" + strings.Join(addrs, ",")
}

// startMember starts a server that may become part of a Cluster. It takes those
// for dead that are silent for timeout.
func startMember(t *testing.T, timeout time.Duration) *server {
	t.Helper()
	return start(t, "--cluster-enabled", "yes", "--cluster-port", otherPort,
		"--cluster-node-timeout", fmt.Sprint(timeout.Milliseconds()),
		"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1") // they only make it slower
}

// meet makes a server known to members, and them to it.
func meet(t *testing.T, s *server, members []*server) {
	t.Helper()
	for _, m := range members {
		if err := m.client(t).Do(context.Background(), "CLUSTER", "MEET", "127.0.0.1", s.port, s.other).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func startPrimaries(t *testing.T, n int, timeout time.Duration) []*server {
	t.Helper()
	const slots = 16384
	ctx := context.Background()
	var servers []*server
	for i := range n {
		s := startMember(t, timeout)
		servers = append(servers, s)
		c := s.client(t)
		err := c.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err()
		if err == nil {
			err = c.ClusterAddSlotsRange(ctx, i*slots/n, (i+1)*slots/n-1).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range servers {
		meet(t, s, servers[:i])
	}
	return servers
}

// startReplica starts a replica of one of a Cluster's members, and returns it
// once it is in step.
func startReplica(t *testing.T, primary *server, timeout time.Duration, members []*server) *server {
	t.Helper()
	replica := startMember(t, timeout)
	meet(t, replica, members)
	c := replica.client(t)
	id, err := primary.client(t).ClusterMyID(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica knows its primary", func(ctx context.Context) (bool, error) {
		err := c.ClusterReplicate(ctx, id).Err()
		return err == nil, err
	})
	p := primary.client(t)
	eventually(t, "the replica is in step", func(ctx context.Context) (bool, error) {
		info, err := p.Info(ctx, "replication").Result()
		return strings.Contains(info, fmt.Sprintf("port=%d,state=online", replica.port)), err
	})
	return replica
}

// awaitCluster waits until all members know each other, by what they are, and
// have all slots served.
func awaitCluster(t *testing.T, members []*server) {
	t.Helper()
	for _, s := range members {
		c := s.client(t)
		eventually(t, "the Cluster forms", func(ctx context.Context) (bool, error) {
			info, err := c.ClusterInfo(ctx).Result()
			if err != nil || !strings.Contains(info, "cluster_state:ok") {
				return false, err
			}
			slots, err := c.Do(ctx, "CLUSTER", "SLOTS").Slice()
			known := 0
			for _, s := range slots {
				known += len(s.([]any)) - 2 // less the first slot and the last
			}
			return known == len(members), err
		})
	}
}

func TestSentinel(t *testing.T) {
	primary := start(t)
	replica := start(t, "--replicaof", "127.0.0.1", fmt.Sprint(primary.port))
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor main 127.0.0.1 %d 1\nsentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 3000\n", primary.port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := startSentinel(t, config)
	eventually(t, "Sentinel knows the replica", func(ctx context.Context) (bool, error) {
		replicas, err := sentinel.client(t).Do(ctx, "SENTINEL", "REPLICAS", "main").Slice()
		return len(replicas) == 1, err
	})
	eventually(t, "the replica is in step", func(ctx context.Context) (bool, error) {
		info, err := replica.client(t).Info(ctx, "replication").Result()
		return strings.Contains(info, "master_link_status:up"), err
	})
	url := "redis+sentinel://" + sentinel.addr() + "/main"
	smoke(t, url, Options{WaitReplicas: 1, WaitTimeout: 20 * time.Second})

	t.Run("it goes on with the replica when the primary is gone", func(t *testing.T) {
		s := openAt(t, url, Options{Prefix: newPrefix(), WaitReplicas: 1, WaitTimeout: 20 * time.Second, unindexed: true})
		ctx := context.Background()
		e := store.Exchange{ID: "e1", Messages: []store.Message{{JSON: []byte("{}"), Tokens: 1}}}
		if _, err := s.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: e, Anyway: true}); err != nil {
			t.Fatal(err)
		}
		primary.stop()
		eventually(t, "another primary answers", func(ctx context.Context) (bool, error) {
			g, err := s.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: 1000, Session: "s", Tokens: 1})
			return len(g.Tail) == 1, err
		})
		// Nobody is left to confirm it: it may not count as saved.
		e.ID = "e2"
		if _, err := s.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: e, Anyway: true}); err == nil {
			t.Error("an append counts as saved that no replica has")
		}
	})
}

func startSentinel(t *testing.T, config string) *server {
	t.Helper()
	needServer(t)
	s, err := launch(t.TempDir(), config, "--sentinel")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}
