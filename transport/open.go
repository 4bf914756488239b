package transport

import (
	"errors"
	"fmt"
	"net/http"
)

// Open prepares a connection to the server that cfg names. It reads the files cfg points at and checks what they
// hold; the first request dials, and runs the exec plugin where there is one. Call [Conn.Close] when done.
func Open(cfg *Config) (*Conn, error) {
	if cfg == nil {
		return nil, errors.New("open a connection: the config is nil: transport.Load finds one")
	}
	server, err := parseServer(cfg.Server)
	if err != nil {
		return nil, err
	}
	who, err := newAuthenticator(cfg)
	if err != nil {
		return nil, fmt.Errorf("open a connection to %s: %w", withoutSecrets(cfg.Server), err)
	}
	pools, err := newConnections(cfg)
	if err != nil {
		return nil, fmt.Errorf("open a connection to %s: %w", withoutSecrets(cfg.Server), err)
	}
	authorize := &authorizing{host: server.Host, impersonate: impersonationHeader(cfg.Impersonate), connections: pools}
	conn, err := New(cfg.Server, &http.Client{Transport: authorize}, &cfg.Options)
	if err != nil {
		return nil, err
	}
	conn.who, conn.authorize, conn.closeIdle = who, authorize, pools.closeIdle
	return conn, nil
}
