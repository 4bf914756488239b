package transport

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Open prepares a connection to the server that cfg names. It reads the files cfg points at and checks what they
// hold; the first request dials. Call [Conn.Close] when done.
func Open(cfg *Config) (*Conn, error) {
	if cfg == nil {
		return nil, fmt.Errorf("open a connection: the config is nil: transport.Load finds one")
	}
	server, err := parseServer(cfg.Server)
	if err != nil {
		return nil, err
	}
	settings, err := tlsConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("open a connection to %s: %w", cfg.Server, err)
	}
	proxy, err := proxyFunc(cfg.ProxyURL)
	if err != nil {
		return nil, fmt.Errorf("open a connection to %s: %w", cfg.Server, err)
	}
	credential, err := newCredential(cfg, server.Host)
	if err != nil {
		return nil, fmt.Errorf("open a connection to %s: %w", cfg.Server, err)
	}
	base := &http.Transport{
		Proxy:               proxy,
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     settings,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 25,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  cfg.DisableCompression,
		ForceAttemptHTTP2:   true,
		// A connection whose peer vanished is noticed after the two together, though no read has a time-out.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	conn, err := New(cfg.Server, &http.Client{Transport: credential.wrap(base)})
	if err != nil {
		return nil, err
	}
	conn.namespace = cfg.Namespace
	conn.closeIdle = base.CloseIdleConnections
	if cfg.UserAgent != "" {
		conn.userAgent = cfg.UserAgent
	}
	return conn, nil
}

// proxyFunc is how http.Transport picks a proxy: the one asked for, else the environment's.
func proxyFunc(proxy string) (func(*http.Request) (*url.URL, error), error) {
	if proxy == "" {
		return http.ProxyFromEnvironment, nil
	}
	parsed, err := url.Parse(proxy)
	if err != nil || parsed.Host == "" {
		return nil, fmt.Errorf("the proxy URL cannot be read: it must look like http://host:port")
	}
	switch parsed.Scheme {
	case "http", "https", "socks5":
		return http.ProxyURL(parsed), nil
	default:
		return nil, fmt.Errorf("the proxy URL's scheme %q is not http, https or socks5", parsed.Scheme)
	}
}
