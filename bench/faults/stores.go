package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/backstory-proxy/backstory/internal/porttest"
)

// embedded is one proxy on the embedded store, on a small disk of its own where
// one can be mounted.
func embedded(bin, dir string) (*site, error) {
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, err
	}
	d := mount(data)
	s, err := newSite(bin, dir, "sqlite "+filepath.Join(data, "backstory.db"), "", 1)
	if err != nil {
		return nil, err
	}
	s.disk = d
	return s, nil
}

// disk is a small file system.
type disk struct{ path string }

// diskSize is room for a trial's sessions, and little enough to be filled at once.
const diskSize = 192 << 20

// mount mounts a file system in memory. It returns nil where that isn't allowed.
func mount(path string) *disk {
	if exec.Command("mount", "-t", "tmpfs", "-o", "size="+strconv.Itoa(diskSize), "tmpfs", path).Run() != nil {
		return nil
	}
	return &disk{path: path}
}

func (d *disk) unmount() { _ = exec.Command("umount", "-l", d.path).Run() }

// fill takes all that is left, and free gives it back.
func (d *disk) fill() error {
	f, err := os.Create(filepath.Join(d.path, "filler"))
	if err != nil {
		return err
	}
	defer f.Close()
	for piece := make([]byte, 1<<20); len(piece) > 0; {
		if _, err := f.Write(piece); err != nil {
			piece = piece[:len(piece)/2]
		}
	}
	return nil
}

func (d *disk) free() error { return os.Remove(filepath.Join(d.path, "filler")) }

// onRedis is two proxies with one Redis.
func onRedis(bin, dir string) (*site, error) {
	primary, port, err := redisServer(dir, "redis")
	if err != nil {
		return nil, err
	}
	s, err := newSite(bin, dir, fmt.Sprintf("redis redis://127.0.0.1:%d {\nfiles off\n}", port), "", 2)
	if err != nil {
		return nil, err
	}
	s.servers = []*process{primary}
	return s, nil
}

// replicated is two proxies with a primary, its replica and a Sentinel that
// promotes it, and waits for the replica before it acknowledges.
func replicated(bin, dir string) (*site, error) {
	primary, port, err := redisServer(dir, "primary")
	if err != nil {
		return nil, err
	}
	replica, _, err := redisServer(dir, "replica", "--replicaof", "127.0.0.1", strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	watch, err := porttest.Next()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, "port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor trial 127.0.0.1 %d 1\nsentinel down-after-milliseconds trial 1000\nsentinel failover-timeout trial 4000\n", watch, dir, port), 0o600); err != nil {
		return nil, err
	}
	sentinel := &process{args: []string{"redis-server", config, "--sentinel"}, ready: "+monitor"}
	s, err := newSite(bin, dir, fmt.Sprintf("redis redis+sentinel://127.0.0.1:%d/trial {\nfiles off\nwait_replicas 1\n}", watch), "", 2)
	if err != nil {
		return nil, err
	}
	s.servers = []*process{primary, replica, sentinel}
	return s, nil
}

// redisServer is a Redis that keeps what it acknowledged when it is killed.
func redisServer(dir, name string, args ...string) (*process, int, error) {
	port, err := porttest.Next()
	if err != nil {
		return nil, 0, err
	}
	home := filepath.Join(dir, name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, 0, err
	}
	return &process{ready: "Ready to accept connections", args: append([]string{
		"redis-server", "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", home,
		"--save", "", "--appendonly", "yes", "--appendfsync", "no",
	}, args...)}, port, nil
}
