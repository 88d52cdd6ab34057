package redis

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Target is what a URL says of the servers.
type Target struct {
	Addrs    []string
	Cluster  bool
	Master   string // the name that Sentinel knows the primary by; empty: no Sentinel
	Database int
	Username string
	Password string
	// SentinelUsername and SentinelPassword are those of the Sentinels
	// themselves.
	SentinelUsername, SentinelPassword string
	// TLS is nil where the connection is in the clear.
	TLS *tls.Config
}

const (
	defaultPort         = "6379"
	defaultSentinelPort = "26379"
)

// ParseURL reads the address of a store, without connecting:
//
//	redis://[user:password@]host[:port][/database]
//	redis+sentinel://[user:password@]host[:port],…/master[/database]
//	redis+cluster://[user:password@]host[:port],…
//
// With rediss in place of redis, the connections are encrypted. Parameters:
// ca, cert and key (PEM files), server_name; sentinel_user, sentinel_password.
// An error tells nothing of the password.
func ParseURL(text string) (Target, error) {
	u, hosts, err := split(text)
	if err != nil {
		return Target{}, fmt.Errorf("redis: the URL of the store: %w", err)
	}
	t := Target{Username: u.User.Username()}
	t.Password, _ = u.User.Password()
	if err := t.read(u, hosts); err != nil {
		return Target{}, fmt.Errorf("redis: the URL of the store: %w", err)
	}
	return t, nil
}

// split parses the URL but for its hosts, of which net/url knows only one.
func split(text string) (*url.URL, string, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return nil, "", errors.New("it has no scheme; write redis://host:6379")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@') + 1
	hosts := rest[at:end]
	u, err := url.Parse(scheme + "://" + rest[:at] + "host" + rest[end:])
	if err != nil {
		// What net/url says quotes the URL, password and all.
		return nil, "", errors.New("it can't be read; percent-encode what user, password and path hold besides letters and digits")
	}
	if u.Fragment != "" {
		return nil, "", errors.New("it has a '#'; in a password, write %23")
	}
	return u, hosts, nil
}

func (t *Target) read(u *url.URL, hosts string) error {
	scheme := strings.ToLower(u.Scheme)
	plain := strings.Replace(scheme, "rediss", "redis", 1)
	path := strings.Split(strings.Trim(u.Path, "/"), "/")
	port := defaultPort
	switch plain {
	case "redis":
	case "redis+cluster":
		t.Cluster = true
	case "redis+sentinel":
		if path[0] == "" {
			return errors.New("it doesn't name the primary; write redis+sentinel://host:26379/mymaster")
		}
		t.Master, path, port = path[0], append(path[1:], ""), defaultSentinelPort
	default:
		return fmt.Errorf("its scheme is %q; it must be redis, redis+sentinel or redis+cluster, or rediss for TLS", u.Scheme)
	}
	for host := range strings.SplitSeq(hosts, ",") {
		addr, err := address(host, port)
		if err != nil {
			return err
		}
		t.Addrs = append(t.Addrs, addr)
	}
	if plain == "redis" && len(t.Addrs) > 1 {
		return errors.New("it names several hosts; write redis+sentinel:// or redis+cluster://")
	}
	path = slices.DeleteFunc(path, func(p string) bool { return p == "" })
	if len(path) > 1 || t.Cluster && len(path) > 0 {
		return errors.New("there is too much in its path")
	}
	if len(path) == 1 {
		var err error
		if t.Database, err = strconv.Atoi(path[0]); err != nil || t.Database < 0 {
			return fmt.Errorf("its database is %q; it must be a number", path[0])
		}
	}
	return t.parameters(u.Query(), scheme != plain)
}

func address(host, port string) (string, error) {
	if h, p, err := net.SplitHostPort(host); err == nil {
		host, port = h, p
	} else {
		host = strings.Trim(host, "[]")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("the port of %q must be a number from 1 to 65535", host)
	}
	if host == "" {
		return "", errors.New("it has no host; write redis://host:6379")
	}
	return net.JoinHostPort(host, port), nil
}

func (t *Target) parameters(query url.Values, secure bool) error {
	var ca, cert, key, name string
	known := map[string]*string{
		"ca": &ca, "cert": &cert, "key": &key, "server_name": &name,
		"sentinel_user": &t.SentinelUsername, "sentinel_password": &t.SentinelPassword,
	}
	for parameter, values := range query {
		into := known[parameter]
		switch {
		case into == nil:
			return fmt.Errorf("it has a parameter %q; known are ca, cert, key, server_name, sentinel_user and sentinel_password", parameter)
		case len(values) > 1:
			return fmt.Errorf("it has the parameter %s twice", parameter)
		}
		*into = values[0]
	}
	if !secure {
		if ca+cert+key+name != "" {
			return errors.New("it has parameters for TLS without TLS; write rediss://")
		}
		return nil
	}
	t.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return fmt.Errorf("ca: %w", err)
		}
		t.TLS.RootCAs = x509.NewCertPool()
		if !t.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("ca: there is no certificate in %s", ca)
		}
	}
	if cert+key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("cert and key: %w", err)
		}
		t.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}
