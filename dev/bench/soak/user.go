//go:build unix

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// user is a service account with only the rights to read the soak's resources, behind a proxy that can freeze. Its token is in a
// file.
type user struct {
	kubeconfig string
	token      string // the file's path
	proxy      *silentProxy
}

const account = "soak"

func (w *world) newUser(ctx context.Context, dir string) (*user, error) {
	config, err := transport.Load(ctx, &transport.LoadOptions{Path: w.opts.kubeconfig})
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(config.Server)
	if err != nil {
		return nil, err
	}
	if err := w.grant(ctx); err != nil {
		return nil, err
	}
	proxy, err := newSilentProxy(ctx, server.Host)
	if err != nil {
		return nil, err
	}
	u := &user{kubeconfig: filepath.Join(dir, "kubeconfig"), token: filepath.Join(dir, "token"), proxy: proxy}
	if err := w.replaceToken(ctx, u); err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": account,
		"contexts": []any{map[string]any{"name": account, "context": map[string]any{"cluster": account, "user": account}}},
		"users":    []any{map[string]any{"name": account, "user": map[string]any{"tokenFile": u.token}}},
		"clusters": []any{map[string]any{"name": account, "cluster": map[string]any{
			"server": "https://" + proxy.listener.Addr().String(), "certificate-authority-data": base64.StdEncoding.EncodeToString(config.CAData),
		}}},
	})
	if err != nil {
		return nil, err
	}
	return u, os.WriteFile(u.kubeconfig, text, 0o600)
}

// grant creates the account and its rights: the soak's resources, and the definitions watched by live discovery.
func (w *world) grant(ctx context.Context) error {
	if w.opts.inventory {
		return w.grantAll(ctx)
	}
	rule := func(group string, resources ...any) any {
		return map[string]any{"apiGroups": []any{group}, "resources": resources, "verbs": []any{"get", "list", "watch"}}
	}
	rules := []any{rule(group, "*"), rule("apiextensions.k8s.io", "customresourcedefinitions"), rule("apiregistration.k8s.io", "apiservices")}
	for _, r := range builtIn {
		rules = append(rules, rule(r.group, r.plural))
	}
	for _, one := range []struct {
		resource string
		object   map[string]any
	}{
		{"serviceaccounts", map[string]any{"metadata": map[string]any{"name": account, "namespace": namespace(0)}}},
		{"clusterroles", map[string]any{"metadata": map[string]any{"name": account}, "rules": rules}},
		{"clusterrolebindings", map[string]any{
			"metadata": map[string]any{"name": account},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": namespace(0)}},
		}},
	} {
		if err := w.create(ctx, one.resource, &unstructured.Object{Object: one.object}); err != nil {
			return err
		}
	}
	return nil
}

// replaceToken writes a new token into the user's file.
func (w *world) replaceToken(ctx context.Context, u *user) error {
	accounts, err := w.client.Resource(ctx, "serviceaccounts")
	if err != nil {
		return err
	}
	token, err := accounts.Namespace(namespace(0)).CreateToken(ctx, account, nil)
	if err != nil {
		return err
	}
	if err := os.WriteFile(u.token+".new", []byte(token.Token), 0o600); err != nil {
		return err
	}
	return os.Rename(u.token+".new", u.token)
}
