package main

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// fault is something that breaks, and is mended again.
type fault struct {
	name string
	do   func(*site) error
}

// broken is how long a fault lasts: longer than a save waits for the store.
const broken = 2500 * time.Millisecond

var always = []fault{
	{"a proxy is killed", func(s *site) error {
		s.proxies[0].end(syscall.SIGKILL)
		return s.proxies[0].start()
	}},
	{"a proxy is restarted", func(s *site) error {
		s.proxies[0].end(syscall.SIGTERM)
		return s.proxies[0].start()
	}},
	{"reloads", func(s *site) error {
		for range 3 {
			for _, p := range s.proxies {
				if err := p.reload(); err != nil {
					return err
				}
			}
		}
		return nil
	}},
	{"the router breaks off", func(s *site) error {
		s.router.breaks.Store(true)
		time.Sleep(broken)
		s.router.breaks.Store(false)
		return nil
	}},
}

var withDisk = []fault{
	{"the disk is full", func(s *site) error {
		if err := s.disk.fill(); err != nil {
			return err
		}
		time.Sleep(broken)
		return s.disk.free()
	}},
	{"the disk is full, a proxy killed", func(s *site) error {
		if err := s.disk.fill(); err != nil {
			return err
		}
		time.Sleep(broken / 2)
		s.proxies[0].end(syscall.SIGKILL)
		if err := s.disk.free(); err != nil {
			return err
		}
		return s.proxies[0].start()
	}},
}

var withRedis = []fault{
	{"all proxies are killed", func(s *site) error {
		for _, p := range s.proxies {
			p.end(syscall.SIGKILL)
		}
		for _, p := range s.proxies {
			if err := p.start(); err != nil {
				return err
			}
		}
		return nil
	}},
	{"Redis is killed", func(s *site) error {
		s.servers[0].end(syscall.SIGKILL)
		time.Sleep(broken)
		return s.servers[0].start()
	}},
	{"Redis is killed, then a proxy", func(s *site) error {
		s.servers[0].end(syscall.SIGKILL)
		time.Sleep(broken)
		s.proxies[0].end(syscall.SIGKILL)
		return errors.Join(s.proxies[0].start(), s.servers[0].start())
	}},
	{"Redis hangs", func(s *site) error {
		s.servers[0].signal(syscall.SIGSTOP)
		time.Sleep(broken)
		s.servers[0].signal(syscall.SIGCONT)
		return nil
	}},
	{"Redis is full", func(s *site) error {
		if err := s.configure("maxmemory", "1"); err != nil {
			return err
		}
		time.Sleep(broken)
		return s.configure("maxmemory", "0")
	}},
}

var withReplica = []fault{
	{"the replica is killed", func(s *site) error {
		replica, err := s.role("slave")
		if err != nil {
			return err
		}
		replica.end(syscall.SIGKILL)
		time.Sleep(broken)
		return replica.start()
	}},
	{"a failover", func(s *site) error {
		primary, err := s.role("master")
		if err != nil {
			return err
		}
		primary.end(syscall.SIGKILL)
		time.Sleep(2 * broken)
		return primary.start()
	}},
}

// connect speaks to a server of the store itself.
func connect(p *process) *redis.Client {
	for i, a := range p.args {
		if a == "--port" {
			return redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + p.args[i+1]})
		}
	}
	return nil
}

func (s *site) configure(name, value string) error {
	c := connect(s.servers[0])
	defer c.Close()
	return c.ConfigSet(context.Background(), name, value).Err()
}

// role returns the server that is the primary, or its replica, once the two are
// in step.
func (s *site) role(role string) (*process, error) {
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		for _, p := range s.servers[:2] {
			c := connect(p)
			info, err := c.Info(context.Background(), "replication").Result()
			c.Close()
			if err == nil && strings.Contains(info, "role:"+role) &&
				(strings.Contains(info, "master_link_status:up") || strings.Contains(info, "state=online")) {
				return p, nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, errors.New("the two servers don't get in step")
}
