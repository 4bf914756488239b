package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// tlsConfig is what the config says of the server's certificate and the client's own.
func tlsConfig(cfg *Config) (*tls.Config, error) {
	settings := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         cfg.ServerName,
		InsecureSkipVerify: cfg.Insecure, //nolint:gosec // the user's own insecure-skip-tls-verify
	}
	authority, err := dataOrFile(cfg.CAData, cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	if len(authority) > 0 {
		if cfg.Insecure {
			return nil, errors.New("a certificate authority and insecure-skip-tls-verify exclude each other: drop one")
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(authority) {
			return nil, errors.New("certificate authority: no PEM certificate in it")
		}
	}
	certificate, err := dataOrFile(cfg.CertData, cfg.CertFile)
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	key, err := dataOrFile(cfg.KeyData, cfg.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("client key: %w", err)
	}
	if (len(certificate) == 0) != (len(key) == 0) {
		return nil, errors.New("a client certificate needs its key and a key its certificate: one is missing")
	}
	if len(certificate) > 0 {
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("client certificate and key: %w", err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}

func dataOrFile(data []byte, path string) ([]byte, error) {
	if len(data) > 0 || path == "" {
		return data, nil
	}
	return os.ReadFile(path)
}
