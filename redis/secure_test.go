package redis

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificates writes a self-signed certificate and its key, and returns the
// files' names.
func certificates(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestTLS(t *testing.T) {
	cert, key := certificates(t)
	s := start(t, "--tls-port", otherPort, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	host := fmt.Sprintf("rediss://127.0.0.1:%d", s.other)
	smoke(t, host+"?ca="+cert+"&cert="+cert+"&key="+key, Options{})
	if _, err := Open(context.Background(), host, Options{NoFiles: true}); err == nil {
		t.Error("a certificate of nobody's was accepted")
	}
	clear := strings.Replace(host, "rediss", "redis", 1)
	if _, err := Open(context.Background(), clear, Options{NoFiles: true}); err == nil || !strings.Contains(err.Error(), "does it want TLS") {
		t.Errorf("without TLS: %v", err)
	}
}

func TestUserWithFewRights(t *testing.T) {
	s := start(t, "--user", "backstory", "on", ">se:cr/et@", "~"+process+"*", "+@all", "-@admin", "-@dangerous", "--user", "default", "off")
	host := "@" + s.addr()
	smoke(t, "redis://backstory:se%3Acr%2Fet%40"+host, Options{})
	for name, c := range map[string]struct{ user, prefix, want string }{
		"no user":        {"", newPrefix(), "it wants a password"},
		"wrong password": {"backstory:hunter2", newPrefix(), "user or password is wrong"},
		"other prefix":   {"backstory:se%3Acr%2Fet%40", "other:", "may not do what the store needs"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(context.Background(), "redis://"+c.user+host, Options{Prefix: c.prefix, NoFiles: true})
			if err == nil {
				_, err = s.Take(context.Background(), "a", 1)
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v; want it to say %q", err, c.want)
			}
		})
	}
}
