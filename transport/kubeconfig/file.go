package kubeconfig

// File is what one kubeconfig file says, or several after [Merge]. Its maps are keyed by the entries' names.
// A File is safe for concurrent reading.
type File struct {
	CurrentContext string
	Clusters       map[string]Cluster
	Users          map[string]User
	Contexts       map[string]Context
	// Preferences is deprecated: no Kubernetes component uses it. It is kept so that nothing is lost.
	Preferences Preferences
	Extensions  Extensions
}

// Cluster says where a cluster is and how its server proves who it is. [Parse] makes file paths absolute with the
// folder it was given. A file and inline data for the same thing are refused by [File.Resolve], as in kubectl.
type Cluster struct {
	Server                   string     `json:"server"`
	TLSServerName            string     `json:"tls-server-name,omitempty"`
	InsecureSkipTLSVerify    bool       `json:"insecure-skip-tls-verify,omitempty"`
	CertificateAuthority     string     `json:"certificate-authority,omitempty"`
	CertificateAuthorityData []byte     `json:"certificate-authority-data,omitempty"`
	ProxyURL                 string     `json:"proxy-url,omitempty"`
	DisableCompression       bool       `json:"disable-compression,omitempty"`
	Extensions               Extensions `json:"extensions,omitempty"`

	// Origin is the absolute path of the file the entry was read from; "" after [Parse], which knows of no file.
	Origin string `json:"-"`
}

// User says how the client proves who it is. Where both Token and TokenFile are there, a TokenFile that can be read
// wins, as in kubectl.
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

	// Origin is the absolute path of the file the entry was read from; "" after [Parse], which knows of no file.
	Origin string `json:"-"`
}

// Context pairs a cluster with a user and a default namespace; Cluster and User are names in the same [File].
type Context struct {
	Cluster    string     `json:"cluster"`
	User       string     `json:"user"`
	Namespace  string     `json:"namespace,omitempty"`
	Extensions Extensions `json:"extensions,omitempty"`

	// Origin is the absolute path of the file the entry was read from; "" after [Parse], which knows of no file.
	Origin string `json:"-"`
}

// Preferences is what a file says about kubectl's own output.
type Preferences struct {
	Colors     bool       `json:"colors,omitempty"`
	Extensions Extensions `json:"extensions,omitempty"`
}
