package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// refresh gets a new ID token, and a refresh token where the issuer replaces it:
// https://openid.net/specs/openid-connect-core-1_0.html#RefreshTokens.
func (a *oidcAuthenticator) refresh(ctx context.Context) (who *identity, expires time.Time, err error) {
	token, err := a.post(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	// From here on the issuer may take the new refresh token only.
	a.refreshToken = token.RefreshToken
	idToken, _ := token.Extra("id_token").(string)
	if idToken == "" {
		return nil, time.Time{}, errors.New("the issuer's answer has no id_token: " +
			"log in again with the scope openid, if the issuer refreshes ID tokens at all")
	}
	authorization, expires, err := readIDToken(idToken)
	switch {
	case err != nil:
		return nil, time.Time{}, fmt.Errorf("the issuer's answer: %w", err)
	case !a.tokens.now().Before(expires):
		return nil, time.Time{}, fmt.Errorf("the issuer's ID token expired at %s: check this machine's clock", expires.UTC().Format(time.RFC3339))
	}
	a.idToken = idToken
	return &identity{authorization: authorization}, expires, nil
}

// post asks the issuer's token endpoint.
func (a *oidcAuthenticator) post(ctx context.Context) (*oauth2.Token, error) {
	if a.refreshToken == "" {
		return nil, errors.New("there is no refresh token: log in again with the provider's own tool")
	}
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	a.oauth.Endpoint.TokenURL, err = tokenEndpoint(ctx, client, a.oidc.Issuer)
	if err != nil {
		return nil, err
	}
	source := a.oauth.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, client), &oauth2.Token{RefreshToken: a.refreshToken})
	token, err := source.Token()
	if err != nil {
		return nil, a.refused(err)
	}
	return token, nil
}

// readIDToken is the header's value for an ID token, and when it expires.
func readIDToken(idToken string) (authorization string, expires time.Time, err error) {
	if expires, err = expiryOf(idToken); err == nil {
		authorization, err = tokenOf(idToken)
	}
	return authorization, expires, err
}

// refused says why the token endpoint gave none. oauth2's own errors quote the answer's body.
func (a *oidcAuthenticator) refused(err error) error {
	at := a.oauth.Endpoint.TokenURL
	var answer *oauth2.RetrieveError
	var broken *url.Error
	switch {
	case errors.As(err, &broken):
		return fmt.Errorf("POST %s: %w", withoutSecrets(at), sanitizeError(broken.Err))
	case !errors.As(err, &answer):
		return fmt.Errorf("POST %s: the answer is no token of OAuth 2.0", withoutSecrets(at))
	}
	says := ""
	if answer.ErrorCode != "" {
		says = fmt.Sprintf(", error %q", excerpt(a.withoutOwnSecrets(answer.ErrorCode)))
	}
	if answer.ErrorDescription != "" {
		says += fmt.Sprintf(", %q", excerpt(a.withoutOwnSecrets(answer.ErrorDescription)))
	}
	advice := ""
	switch answer.ErrorCode {
	case "invalid_grant":
		advice = ": the refresh token is no longer accepted: log in again with the provider's own tool"
	case "invalid_client", "unauthorized_client":
		advice = ": check the client's ID and secret"
	}
	return fmt.Errorf("POST %s: the answer is %d %s%s%s", withoutSecrets(at), answer.Response.StatusCode,
		http.StatusText(answer.Response.StatusCode), says, advice)
}

// withoutOwnSecrets takes out of the issuer's words what was sent to it.
func (a *oidcAuthenticator) withoutOwnSecrets(text string) string {
	for _, secret := range []string{a.refreshToken, a.idToken, a.oidc.ClientSecret.Reveal()} {
		if secret != "" {
			text = strings.NewReplacer(secret, "…", url.QueryEscape(secret), "…").Replace(text)
		}
	}
	return text
}
