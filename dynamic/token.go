package dynamic

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/anykind/anykind/unstructured"
)

// Token is a service account's bearer token. Printed or logged it does not show its secret.
type Token struct {
	// Token is the secret.
	Token string
	// Expires is when the server takes it no longer.
	Expires time.Time
}

// String tells only when the token expires.
func (t Token) String() string {
	return "a token that expires at " + t.Expires.UTC().Format(time.RFC3339)
}

// GoString is String: %#v shows no secret either.
func (t Token) GoString() string { return t.String() }

// LogValue implements slog.LogValuer: it is String.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// TokenOptions say what a token is for.
type TokenOptions struct {
	// Audiences are whom it shall convince; none means the API server.
	Audiences []string
	// Lifetime is how long it shall be good for, at least ten minutes; 0 means the server's default, an hour. The server
	// may choose otherwise.
	Lifetime time.Duration
	// BoundTo is a Pod, Secret or Node, as read from the server, whose deletion ends the token; nil means none.
	BoundTo *unstructured.Object
}

// CreateToken issues a token of a service account, through the subresource token; other resources are refused. See
// https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-request-v1/.
func (r *Resource) CreateToken(ctx context.Context, name string, opts *TokenOptions) (*Token, error) {
	tokens := r.Sub("token")
	path, err := tokens.objectPath("create", name)
	if err != nil {
		return nil, err
	}
	body, err := unstructured.Encode(tokens.withKind(tokenRequest(opts)))
	if err != nil {
		return nil, fmt.Errorf("create %s %q: encode the request: %w", tokens, name, err)
	}
	answer, err := r.exchange(ctx, http.MethodPost, path, nil, jsonType, body)
	if err != nil {
		return nil, err
	}
	var issued struct {
		Status struct {
			Token               string    `json:"token"`
			ExpirationTimestamp time.Time `json:"expirationTimestamp"`
		} `json:"status"`
	}
	// What is wrong with an answer could quote the secret in it.
	if json.Unmarshal(answer, &issued) != nil || issued.Status.Token == "" {
		return nil, fmt.Errorf("create %s %q: POST %s%s: the answer holds no token", tokens, name, r.conn.Server(), path)
	}
	return &Token{Token: issued.Status.Token, Expires: issued.Status.ExpirationTimestamp}, nil
}

func tokenRequest(opts *TokenOptions) *unstructured.Object {
	spec := map[string]any{}
	if opts != nil {
		if len(opts.Audiences) > 0 {
			audiences := make([]any, len(opts.Audiences))
			for i, audience := range opts.Audiences {
				audiences[i] = audience
			}
			spec["audiences"] = audiences
		}
		if opts.Lifetime != 0 {
			spec["expirationSeconds"] = int64(opts.Lifetime / time.Second)
		}
		if bound := opts.BoundTo; bound != nil {
			spec["boundObjectRef"] = map[string]any{
				"apiVersion": bound.GetAPIVersion(), "kind": bound.GetKind(), "name": bound.GetName(), "uid": string(bound.GetUID()),
			}
		}
	}
	return &unstructured.Object{Object: map[string]any{"spec": spec}}
}
