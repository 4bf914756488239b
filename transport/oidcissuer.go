package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// client is made for one refresh, which comes once in an hour or so: it keeps no connection, and knows the authorities
// as they are now.
func (a *oidcAuthenticator) client() (*http.Client, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	roots, err := a.roots.content(time.Now())
	if err != nil {
		return nil, fmt.Errorf("read the issuer's certificate authority: %w", err)
	}
	if len(roots) > 0 {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(roots) {
			return nil, errors.New("the issuer's certificate authority: no PEM certificate in it")
		}
	}
	return &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: settings, ForceAttemptHTTP2: true},
		CheckRedirect: onIssuersHost,
	}, nil
}

// onIssuersHost keeps the refresh token and the client's secret, which a redirect may ask for again, at one host.
func onIssuersHost(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return fmt.Errorf("it redirects to another host, %s://%s, where secrets must not go", req.URL.Scheme, req.URL.Host)
	}
	if len(via) >= 10 {
		return errors.New("it redirects in a circle: stopped after 10 redirects")
	}
	return nil
}

// tokenEndpoint asks the issuer where tokens are refreshed:
// https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderConfig.
func tokenEndpoint(ctx context.Context, client *http.Client, issuer string) (string, error) {
	from := strings.TrimRight(issuer, "/") + "/.well-known/openid-configuration"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return "", errors.New("the issuer's URL cannot be read")
	}
	response, err := client.Do(req)
	if err != nil {
		var wrapper *url.Error
		if errors.As(err, &wrapper) {
			err = wrapper.Err
		}
		return "", fmt.Errorf("GET %s: %w", from, sanitizeError(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: the answer is %d %s: is the issuer's URL right?",
			from, response.StatusCode, http.StatusText(response.StatusCode))
	}
	var metadata struct {
		TokenEndpoint string `json:"token_endpoint"`
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	if err != nil {
		return "", fmt.Errorf("GET %s: read the answer: %w", from, err)
	}
	if json.Unmarshal(body, &metadata) != nil || metadata.TokenEndpoint == "" {
		return "", fmt.Errorf("GET %s: the answer names no token_endpoint: is the issuer's URL right?", from)
	}
	endpoint, err := secureURL(metadata.TokenEndpoint)
	if err != nil {
		return "", fmt.Errorf("GET %s: the token_endpoint %w", from, err)
	}
	return endpoint, nil
}

// secureURL checks where secrets go. Its error follows what the URL is called.
func secureURL(raw string) (string, error) {
	parsed, err := url.Parse(raw)
	switch {
	case err != nil, parsed.Host == "", parsed.Scheme != "https" && parsed.Scheme != "http":
		return "", fmt.Errorf("%q cannot be used: it must look like https://host/path", withoutSecrets(raw))
	case parsed.User != nil || parsed.Fragment != "":
		return "", fmt.Errorf("%q holds a user or a fragment: leave them out", withoutSecrets(raw))
	case parsed.Scheme == "http" && !loopback(parsed.Hostname()):
		return "", fmt.Errorf("%q must be https: the refresh token would be sent in the clear", withoutSecrets(raw))
	}
	return raw, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
