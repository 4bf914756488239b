package transport

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/transport/kubeconfig/edit"
)

// LoadKubeconfig reads the kubeconfig of [Load]: the file at path or, for "", the merged files of KUBECONFIG, or ~/.kube/config.
// Its Contexts are names for LoadOptions.Context, with the result as LoadOptions.Kubeconfig:
//
//	file, err := transport.LoadKubeconfig("")
//	…
//	for name := range file.Contexts {
//		cfg, err := transport.Load(ctx, &transport.LoadOptions{Kubeconfig: file, Context: name})
//
// A missing kubeconfig is an error.
func LoadKubeconfig(path string) (*kubeconfig.File, error) {
	file, _, err := newLocator().readKubeconfig(path)
	if err != nil {
		return nil, fmt.Errorf("read a kubeconfig: %w", err)
	}
	return file, nil
}

// fromKubeconfig resolves a context of opts.Kubeconfig, or of the files.
func (l *locator) fromKubeconfig(opts *LoadOptions) (*Config, error) {
	file := opts.Kubeconfig
	from := "LoadOptions.Kubeconfig"
	if file != nil && opts.Path != "" {
		return nil, errors.New("LoadOptions: Path and Kubeconfig exclude each other (drop one)")
	}
	if file == nil {
		var err error
		if file, from, err = l.readKubeconfig(opts.Path); err != nil {
			return nil, err
		}
	}
	if opts.Kubeconfig == nil && opts.Path == "" && len(file.Contexts) == 0 && len(file.Clusters) == 0 {
		return nil, absent("%s: it has no context and no cluster", from)
	}
	resolved, err := file.Resolve(&kubeconfig.ResolveOptions{Context: opts.Context, Cluster: opts.Cluster, User: opts.User})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	cfg := newConfig(resolved)
	if resolved.User.AuthProvider != nil {
		if cfg.OIDC, err = newOIDC(resolved); err != nil {
			return nil, fmt.Errorf("%s: user %q: %w", from, resolved.UserName, err)
		}
	}
	return cfg, nil
}

// readKubeconfig reads the file at path, or the default files for "", and returns their names for errors.
func (l *locator) readKubeconfig(path string) (file *kubeconfig.File, from string, err error) {
	if path != "" {
		file, err = kubeconfig.Read(path)
		return file, path, err
	}
	if list := l.env("KUBECONFIG"); list != "" {
		file, err = readList(list)
		return file, "KUBECONFIG=" + list, err
	}
	home, err := l.home()
	if err != nil {
		return nil, "", absent("KUBECONFIG is not set, and there is no home directory for .kube/config: %w", err)
	}
	path = filepath.Join(home, ".kube", "config")
	file, err = kubeconfig.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = absent("KUBECONFIG is not set, and there is no %s", path)
	}
	return file, path, err
}

// readList merges the files of a KUBECONFIG list. Missing files are skipped unless all are missing.
func readList(list string) (*kubeconfig.File, error) {
	var files []*kubeconfig.File
	for _, path := range filepath.SplitList(list) {
		file, err := kubeconfig.Read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("KUBECONFIG=%s: %w", list, err)
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		// Not absent: a typing error must not lead to a different cluster.
		return nil, fmt.Errorf("KUBECONFIG=%s: none of its files exists (correct it, or unset it to search elsewhere): %w", list, fs.ErrNotExist)
	}
	return kubeconfig.Merge(files...), nil
}

// newConfig converts a kubeconfig's context, without an auth-provider.
func newConfig(r *kubeconfig.ResolvedContext) *Config {
	cfg := &Config{
		Server:             r.Cluster.Server,
		Options:            Options{Namespace: r.Namespace},
		CAFile:             r.Cluster.CertificateAuthority,
		CAData:             r.Cluster.CertificateAuthorityData,
		ServerName:         r.Cluster.TLSServerName,
		Insecure:           r.Cluster.InsecureSkipTLSVerify,
		ProxyURL:           r.Cluster.ProxyURL,
		DisableCompression: r.Cluster.DisableCompression,
		CertFile:           r.User.ClientCertificate,
		CertData:           r.User.ClientCertificateData,
		KeyFile:            r.User.ClientKey,
		KeyData:            r.User.ClientKeyData.Secret,
		Token:              r.User.Token,
		TokenFile:          r.User.TokenFile,
		Username:           r.User.Username,
		Password:           r.User.Password,
		Impersonate: Impersonation{
			User:   r.User.Impersonate,
			UID:    r.User.ImpersonateUID,
			Groups: r.User.ImpersonateGroups,
			Extra:  r.User.ImpersonateUserExtra,
		},
	}
	if plugin := r.User.Exec; plugin != nil {
		cfg.Exec = &ExecPlugin{Exec: *plugin, ClusterConfig: r.Cluster.Extensions[kubeconfig.ExecExtension]}
	}
	return cfg
}

// newOIDC converts an auth-provider; Resolve has rejected every provider but oidc. Refreshed tokens are saved in the file of the
// old tokens, if any.
func newOIDC(r *kubeconfig.ResolvedContext) (*OIDC, error) {
	config := r.User.AuthProvider.Config
	authorities, err := base64.StdEncoding.DecodeString(config["idp-certificate-authority-data"].Reveal())
	if err != nil {
		return nil, errors.New("auth-provider: idp-certificate-authority-data is not base64")
	}
	oidc := &OIDC{
		Issuer:       config["idp-issuer-url"].Reveal(),
		ClientID:     config["client-id"].Reveal(),
		ClientSecret: config["client-secret"],
		IDToken:      config["id-token"],
		RefreshToken: config["refresh-token"],
		CAFile:       config["idp-certificate-authority"].Reveal(),
		CAData:       authorities,
	}
	if r.User.Origin != "" {
		oidc.storeTokens(r.User.Origin, r.UserName)
	}
	return oidc, nil
}

// storeTokens sets LoadTokens and SaveTokens to a user's tokens in a file.
func (o *OIDC) storeTokens(file, user string) {
	o.LoadTokens = func(context.Context) (idToken, refreshToken string, err error) {
		stored, err := kubeconfig.Read(file)
		if err != nil {
			return "", "", err
		}
		provider := stored.Users[user].AuthProvider
		if provider == nil {
			return "", "", fmt.Errorf("user %q of %s has no auth-provider any more", user, file)
		}
		return provider.Config["id-token"].Reveal(), provider.Config["refresh-token"].Reveal(), nil
	}
	o.SaveTokens = func(ctx context.Context, idToken, refreshToken string) error {
		return edit.File(ctx, file, func(document *edit.Document) error {
			return document.SetAuthProviderConfig(user, map[string]string{"id-token": idToken, "refresh-token": refreshToken})
		})
	}
}
