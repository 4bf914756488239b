// Package kubeconfig reads kubeconfig files and resolves a context to its cluster, user and namespace. It opens no connection and
// runs no program: package transport does. Package edit changes files.
//
//	file, err := kubeconfig.Read("/home/ann/.kube/config")
//	if err != nil { … }
//	resolved, err := file.Resolve(&kubeconfig.ResolveOptions{Context: "shop"}) // nil: the current context
//	if err != nil { … }
//	use(resolved.Cluster.Server, resolved.User, resolved.Namespace)
//
// The format is Kubernetes' v1 Config (https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/). [Merge] joins several
// files according to https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/. Files are accepted
// and rejected like by kubectl, with a single exception: see [File.Resolve].
//
// Secrets are omitted from printed, logged and encoded values of every type: in every fmt verb, through log/slog and as JSON. A
// [Secret] hides itself in any value; package edit writes it to files.
package kubeconfig

import (
	"encoding/json"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// File is the content of a kubeconfig file, or of several files after [Merge]. Its maps are keyed by the entries' names. A File
// is safe for concurrent reading.
type File struct {
	CurrentContext string
	Clusters       map[string]Cluster
	Users          map[string]User
	Contexts       map[string]Context
	// Preferences is deprecated: no Kubernetes component uses it. It is kept to preserve the file's content.
	Preferences Preferences
	Extensions  Extensions
}

// Cluster is the address of a cluster and the verification of its server. [Parse] makes relative file names absolute.
// [File.Resolve] rejects a file together with inline data for the same field, like kubectl.
type Cluster struct {
	Server                   string     `json:"server"`
	TLSServerName            string     `json:"tls-server-name,omitempty"`
	InsecureSkipTLSVerify    bool       `json:"insecure-skip-tls-verify,omitempty"`
	CertificateAuthority     string     `json:"certificate-authority,omitempty"`
	CertificateAuthorityData []byte     `json:"certificate-authority-data,omitempty"`
	ProxyURL                 Secret     `json:"proxy-url,omitempty"`
	DisableCompression       bool       `json:"disable-compression,omitempty"`
	Extensions               Extensions `json:"extensions,omitempty"`

	// Origin is the absolute path of the entry's file. It is "" after [Parse]: only [Read] reads a file.
	Origin string `json:"-"`
}

// User holds credentials. If both Token and TokenFile are set, a readable TokenFile wins, as in kubectl.
type User struct {
	ClientCertificate     string     `json:"client-certificate,omitempty"`
	ClientCertificateData []byte     `json:"client-certificate-data,omitempty"`
	ClientKey             string     `json:"client-key,omitempty"`
	ClientKeyData         SecretData `json:"client-key-data,omitempty"`
	Token                 Secret     `json:"token,omitempty"`
	TokenFile             string     `json:"tokenFile,omitempty"`

	Impersonate          string              `json:"as,omitempty"`
	ImpersonateUID       string              `json:"as-uid,omitempty"`
	ImpersonateGroups    []string            `json:"as-groups,omitempty"`
	ImpersonateUserExtra map[string][]string `json:"as-user-extra,omitempty"`

	Username string `json:"username,omitempty"`
	Password Secret `json:"password,omitempty"`

	AuthProvider *AuthProvider `json:"auth-provider,omitempty"`
	Exec         *Exec         `json:"exec,omitempty"`
	Extensions   Extensions    `json:"extensions,omitempty"`

	Origin string `json:"-"` // see [Cluster.Origin]
}

// Context pairs a cluster with a user and a default namespace. Cluster and User are names in the same [File].
type Context struct {
	Cluster    string     `json:"cluster"`
	User       string     `json:"user"`
	Namespace  string     `json:"namespace,omitempty"`
	Extensions Extensions `json:"extensions,omitempty"`

	Origin string `json:"-"` // see [Cluster.Origin]
}

// Preferences configure kubectl's own output.
type Preferences struct {
	Colors     bool       `json:"colors,omitempty"`
	Extensions Extensions `json:"extensions,omitempty"`
}

// Exec is a credential plugin:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins. Its Args and Env may hold
// secrets.
type Exec struct {
	// APIVersion is [ExecV1] or [ExecV1Beta1]; the program prints the same version.
	APIVersion string `json:"apiVersion,omitempty"`
	// Command is a path, or a name to look up in PATH. [Parse] makes a relative path absolute.
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
	// Env is added to the environment of this process.
	Env []EnvVar `json:"env,omitempty"`
	// InstallHint helps a user whose Command is missing. [File.Resolve] escapes its control characters.
	InstallHint string `json:"installHint,omitempty"`
	// ProvideClusterInfo passes the cluster in KUBERNETES_EXEC_INFO, with its extension [ExecExtension].
	ProvideClusterInfo bool `json:"provideClusterInfo,omitempty"`
	// InteractiveMode is [InteractiveNever], [InteractiveIfAvailable] or [InteractiveAlways]. Only v1beta1 permits an empty mode:
	// [File.Resolve] sets InteractiveIfAvailable then.
	InteractiveMode string `json:"interactiveMode,omitempty"`
}

// The values of [Exec.APIVersion].
const (
	ExecV1      = "client.authentication.k8s.io/v1"
	ExecV1Beta1 = "client.authentication.k8s.io/v1beta1"
)

// The values of [Exec.InteractiveMode]: the program never reads standard input, reads it if that is a terminal, or
// requires a terminal.
const (
	InteractiveNever       = "Never"
	InteractiveIfAvailable = "IfAvailable"
	InteractiveAlways      = "Always"
)

// ExecExtension is the name of the [Cluster] extension for exec programs.
const ExecExtension = "client.authentication.k8s.io/exec"

// EnvVar is an environment variable of an [Exec] program.
type EnvVar struct {
	Name  string `json:"name"`
	Value Secret `json:"value"`
}

// AuthProvider is the older configuration of token providers. kubectl supports the name "oidc" only.
type AuthProvider struct {
	Name   string            `json:"name"`
	Config map[string]Secret `json:"config,omitempty"`
}

// Extensions holds data of any program by name, as JSON. In a file it is a list of names and extensions.
type Extensions map[string]json.RawMessage

// extensionError is a mistake in a list of extensions. It quotes no extension.
type extensionError string

func (e extensionError) Error() string { return string(e) }

// UnmarshalJSON decodes a file's list. As in kubectl, names must be unique.
func (e *Extensions) UnmarshalJSON(data []byte) error {
	var list []struct {
		Name      string          `json:"name"`
		Extension json.RawMessage `json:"extension"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &list); err != nil {
		return extensionError("it must be a list of mappings, each with a name, which is a string, and an extension")
	}
	*e = make(Extensions, len(list))
	for _, entry := range list {
		if _, exists := (*e)[entry.Name]; exists {
			return extensionError(fmt.Sprintf("two extensions are named %q (rename or delete one)", entry.Name))
		}
		if len(entry.Extension) == 0 {
			entry.Extension = json.RawMessage("null")
		}
		(*e)[entry.Name] = entry.Extension
	}
	return nil
}
