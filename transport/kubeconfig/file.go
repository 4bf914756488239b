package kubeconfig

// File is what one kubeconfig file says, or several after [Merge]. Its maps are keyed by the entries' names.
// A File is safe for concurrent reading.
type File struct {
	CurrentContext string
	Clusters       map[string]Cluster
	Users          map[string]User
	Contexts       map[string]Context
}

// Cluster says where a cluster is and how its server proves who it is. File paths are absolute after [Parse]
// was given the folder they are relative to; inline data wins over a file.
type Cluster struct {
	Server                   string `json:"server"`
	TLSServerName            string `json:"tls-server-name"`
	InsecureSkipTLSVerify    bool   `json:"insecure-skip-tls-verify"`
	CertificateAuthority     string `json:"certificate-authority"`
	CertificateAuthorityData []byte `json:"certificate-authority-data"`
	ProxyURL                 string `json:"proxy-url"`
	DisableCompression       bool   `json:"disable-compression"`
}

// User says how the client proves who it is. Inline data wins over a file, except for the token: as in kubectl
// a TokenFile that can be read wins over Token.
type User struct {
	ClientCertificate     string `json:"client-certificate"`
	ClientCertificateData []byte `json:"client-certificate-data"`
	ClientKey             string `json:"client-key"`
	ClientKeyData         []byte `json:"client-key-data"`
	Token                 string `json:"token"`
	TokenFile             string `json:"tokenFile"`
	Username              string `json:"username"`
	Password              string `json:"password"`

	Impersonate          string              `json:"as"`
	ImpersonateUID       string              `json:"as-uid"`
	ImpersonateGroups    []string            `json:"as-groups"`
	ImpersonateUserExtra map[string][]string `json:"as-user-extra"`

	// Exec and AuthProvider are only recognized so far: they are nil unless the user has such an entry.
	Exec         map[string]any `json:"exec"`
	AuthProvider map[string]any `json:"auth-provider"`
}

// Context pairs a cluster with a user and a default namespace; Cluster and User are names in the same [File].
type Context struct {
	Cluster   string `json:"cluster"`
	User      string `json:"user"`
	Namespace string `json:"namespace"`
}
