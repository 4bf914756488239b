package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport/internal/credential"
)

const (
	maxBody    = 1 << 20 // of the issuer's configuration
	maxExcerpt = 256     // of the issuer's error text
	// maxExpiry is the last second expressible in RFC 3339.
	maxExpiry = 253402300799
)

// refresh exchanges the refresh token for an ID token, and for a new refresh token if the issuer replaces it:
// https://openid.net/specs/openid-connect-core-1_0.html#RefreshTokens.
func (a *Authenticator) refresh(ctx context.Context) (*credential.Credential, error) {
	token, err := a.requestToken(ctx)
	if err != nil {
		return nil, err
	}
	// From here on the issuer may accept the new refresh token only.
	a.refreshToken = token.RefreshToken
	idToken, _ := token.Extra("id_token").(string)
	if idToken == "" {
		return nil, errors.New("the issuer's response has no id_token " +
			"(log in again with the scope openid, if the issuer refreshes ID tokens at all)")
	}
	refreshed, err := parseIDToken(idToken)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the issuer's response: %w", err)
	case !a.tokens.Now().Before(refreshed.Expires):
		return nil, fmt.Errorf("the issuer's ID token expired at %s (check this machine's clock)", refreshed.Expires.UTC().Format(time.RFC3339))
	}
	a.idToken = idToken
	return refreshed, nil
}

func (a *Authenticator) requestToken(ctx context.Context) (*oauth2.Token, error) {
	if a.refreshToken == "" {
		return nil, errors.New("there is no refresh token (log in again with the provider's own tool)")
	}
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	if a.oauth.Endpoint.TokenURL, err = tokenEndpoint(ctx, client, a.cfg.Issuer); err != nil {
		return nil, err
	}
	source := a.oauth.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, client), &oauth2.Token{RefreshToken: a.refreshToken})
	token, err := source.Token()
	if err != nil {
		return nil, a.tokenError(err)
	}
	return token, nil
}

// client returns an HTTP client for a single refresh, about once in an hour. It trusts the current certificates of the CA file.
func (a *Authenticator) client() (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	roots, err := a.cfg.CA.Content(time.Now())
	if err != nil {
		return nil, fmt.Errorf("read the issuer's certificate authority: %w", err)
	}
	if len(roots) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(roots) {
			return nil, errors.New("the issuer's certificate authority: no PEM certificate in it")
		}
	}
	return &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true},
		CheckRedirect: credential.CheckRedirect,
	}, nil
}

// tokenEndpoint requests the issuer's configuration:
// https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderConfig.
func tokenEndpoint(ctx context.Context, client *http.Client, issuer string) (endpoint string, err error) {
	from := strings.TrimRight(issuer, "/") + "/.well-known/openid-configuration"
	defer func() {
		if err != nil {
			err = fmt.Errorf("GET %s: %w", from, err)
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return "", errors.New("invalid URL")
	}
	response, err := client.Do(req)
	if err != nil {
		return "", sanitize.Error(err, sanitize.MaxMessage)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the response is %d %s (is the issuer's URL right?)", response.StatusCode, http.StatusText(response.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return "", fmt.Errorf("read the response: %w", err)
	}
	var metadata struct {
		TokenEndpoint string `json:"token_endpoint"`
	}
	if json.Unmarshal(body, &metadata) != nil || metadata.TokenEndpoint == "" {
		return "", errors.New("the response has no token_endpoint (is the issuer's URL right?)")
	}
	if err := checkURL(metadata.TokenEndpoint); err != nil {
		return "", fmt.Errorf("token_endpoint %w", err)
	}
	return metadata.TokenEndpoint, nil
}

// checkURL returns an error unless secrets may be sent to a URL.
func checkURL(raw string) error {
	parsed, err := url.Parse(raw)
	switch {
	case err != nil, parsed.Host == "", parsed.Scheme != "https" && parsed.Scheme != "http":
		return fmt.Errorf("%q: invalid (it must look like https://host/path)", sanitize.URL(raw))
	case parsed.User != nil || parsed.Fragment != "":
		return fmt.Errorf("%q: it has a user or a fragment (leave them out)", sanitize.URL(raw))
	case parsed.Scheme == "http" && !isLoopback(parsed.Hostname()):
		return fmt.Errorf("%q: not https (the refresh token would be sent in the clear)", sanitize.URL(raw))
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// tokenError explains the error of the token endpoint, without the response's body quoted by oauth2.
func (a *Authenticator) tokenError(err error) error {
	post := "POST " + sanitize.URL(a.oauth.Endpoint.TokenURL)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", post, sanitize.Error(failed, sanitize.MaxMessage))
	}
	rejection, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return fmt.Errorf("%s: the response is no token of OAuth 2.0", post)
	}
	text := fmt.Sprintf("%s: the response is %d %s", post, rejection.Response.StatusCode, http.StatusText(rejection.Response.StatusCode))
	if rejection.ErrorCode != "" {
		text += fmt.Sprintf(", error %q", a.excerpt(rejection.ErrorCode))
	}
	if rejection.ErrorDescription != "" {
		text += fmt.Sprintf(", %q", a.excerpt(rejection.ErrorDescription))
	}
	switch rejection.ErrorCode {
	case "invalid_grant":
		text += ": the refresh token is no longer accepted (log in again with the provider's own tool)"
	case "invalid_client", "unauthorized_client":
		text += " (check the client's ID and secret)"
	}
	return errors.New(text)
}

// excerpt returns the beginning of an issuer's text, with the request's secrets removed.
func (a *Authenticator) excerpt(text string) string {
	for _, secret := range []string{a.refreshToken, a.idToken, a.cfg.ClientSecret} {
		if secret != "" {
			text = strings.NewReplacer(secret, "…", url.QueryEscape(secret), "…").Replace(text)
		}
	}
	return sanitize.Text(text, maxExcerpt)
}

// parseIDToken returns the credential of an ID token.
func parseIDToken(idToken string) (*credential.Credential, error) {
	expires, err := parseExpiry(idToken)
	if err != nil {
		return nil, err
	}
	authorization, err := credential.Bearer(idToken)
	if err != nil {
		return nil, err
	}
	return &credential.Credential{Authorization: authorization, Expires: expires}, nil
}

// parseExpiry returns the expiry of an ID token, its claim "exp": https://www.rfc-editor.org/rfc/rfc7519#section-4.1.4. The API
// server checks the signature. Errors do not show the token.
func parseExpiry(idToken string) (time.Time, error) {
	const hint = " (log in again with the provider's own tool)"
	parts := strings.Split(strings.TrimSpace(idToken), ".")
	if len(parts) != 3 {
		return time.Time{}, errors.New("the ID token is not a JWT of three parts" + hint)
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	var exp struct {
		Exp json.Number `json:"exp"`
	}
	if err != nil || json.Unmarshal(claims, &exp) != nil {
		return time.Time{}, errors.New("the ID token's claims cannot be decoded" + hint)
	}
	// A NumericDate may have a fraction.
	seconds, err := exp.Exp.Float64()
	if err != nil || seconds <= 0 {
		return time.Time{}, errors.New("the ID token's claims lack an expiry" + hint)
	}
	return time.Unix(int64(min(seconds, maxExpiry)), 0), nil
}
