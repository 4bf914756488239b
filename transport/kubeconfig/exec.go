package kubeconfig

// Exec is a program that prints credentials:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins.
// Its Args and Env may hold secrets.
type Exec struct {
	// APIVersion is client.authentication.k8s.io/v1 or v1beta1; the program answers in the same one.
	APIVersion string `json:"apiVersion,omitempty"`
	// Command is a bare name to be looked up in PATH, or a path. [Parse] makes a relative path absolute.
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
	// Env is added to the environment of this process.
	Env []EnvVar `json:"env,omitempty"`
	// InstallHint is for the person whose Command is missing. [File.Resolve] takes control characters out of it.
	InstallHint string `json:"installHint,omitempty"`
	// ProvideClusterInfo asks for the cluster in KUBERNETES_EXEC_INFO, its extension [ExecExtension] included.
	ProvideClusterInfo bool `json:"provideClusterInfo,omitempty"`
	// InteractiveMode is Never, IfAvailable or Always. Only v1beta1 may leave it out: [File.Resolve] then says IfAvailable.
	InteractiveMode string `json:"interactiveMode,omitempty"`
}

// EnvVar is one variable of an [Exec] program's environment.
type EnvVar struct {
	Name  string `json:"name"`
	Value Secret `json:"value"`
}

// The values of [Exec.InteractiveMode]: the program never reads standard input, reads it where there is a terminal,
// or cannot do without one.
const (
	InteractiveNever       = "Never"
	InteractiveIfAvailable = "IfAvailable"
	InteractiveAlways      = "Always"
)

// The values of [Exec.APIVersion].
const (
	ExecV1      = "client.authentication.k8s.io/v1"
	ExecV1Beta1 = "client.authentication.k8s.io/v1beta1"
)

// ExecExtension names the extension of a [Cluster] that is handed to its users' exec programs.
const ExecExtension = "client.authentication.k8s.io/exec"

// AuthProvider is the older way to say how tokens are obtained, of which kubectl knows "oidc" only. Config may hold
// secrets.
type AuthProvider struct {
	Name   string            `json:"name"`
	Config map[string]Secret `json:"config,omitempty"`
}
