package transport

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/anykind/anykind/transport/kubeconfig"
)

// configOf is what a kubeconfig's context says, but for the auth-provider.
func configOf(r *kubeconfig.Resolved) *Config {
	return &Config{
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
		Exec:               execOf(r),
		Impersonate: Impersonation{
			User:   r.User.Impersonate,
			UID:    r.User.ImpersonateUID,
			Groups: r.User.ImpersonateGroups,
			Extra:  r.User.ImpersonateUserExtra,
		},
	}
}

func execOf(r *kubeconfig.Resolved) *ExecPlugin {
	from := r.User.Exec
	if from == nil {
		return nil
	}
	plugin := &ExecPlugin{
		APIVersion:         from.APIVersion,
		Command:            from.Command,
		Args:               from.Args,
		InstallHint:        from.InstallHint,
		InteractiveMode:    from.InteractiveMode,
		ProvideClusterInfo: from.ProvideClusterInfo,
		ClusterConfig:      r.Cluster.Extensions[kubeconfig.ExecExtension],
	}
	for _, variable := range from.Env {
		plugin.Env = append(plugin.Env, ExecEnv{Name: variable.Name, Value: variable.Value})
	}
	return plugin
}

// oidcOf reads an auth-provider: resolving has refused all but oidc, the one that kubectl still has. Its new tokens go back to the file that the old ones
// came from.
func oidcOf(r *kubeconfig.Resolved) (*OIDC, error) {
	from := r.User.AuthProvider
	authorities, err := base64.StdEncoding.DecodeString(from.Config["idp-certificate-authority-data"].Reveal())
	if err != nil {
		return nil, errors.New("its auth-provider's idp-certificate-authority-data is not base64")
	}
	file, user := r.User.Origin, r.UserName
	return &OIDC{
		Issuer:       from.Config["idp-issuer-url"].Reveal(),
		ClientID:     from.Config["client-id"].Reveal(),
		ClientSecret: from.Config["client-secret"],
		IDToken:      from.Config["id-token"],
		RefreshToken: from.Config["refresh-token"],
		CAFile:       from.Config["idp-certificate-authority"].Reveal(),
		CAData:       authorities,
		Load: func(context.Context) (idToken, refreshToken string, err error) {
			stored, err := kubeconfig.Read(file)
			if err != nil {
				return "", "", err
			}
			provider := stored.Users[user].AuthProvider
			if provider == nil {
				return "", "", fmt.Errorf("user %q of %s has no auth-provider any more", user, file)
			}
			return provider.Config["id-token"].Reveal(), provider.Config["refresh-token"].Reveal(), nil
		},
		Save: func(ctx context.Context, idToken, refreshToken string) error {
			return kubeconfig.Edit(ctx, file, func(document *kubeconfig.Document) error {
				return document.SetAuthProviderConfig(user, map[string]string{"id-token": idToken, "refresh-token": refreshToken})
			})
		},
	}, nil
}
