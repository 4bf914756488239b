package transport

import (
	"encoding/json"
	"fmt"
	"time"
)

// execInfo is what the program reads in KUBERNETES_EXEC_INFO.
type execInfo struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Spec       execSpec `json:"spec"`
}

type execSpec struct {
	Cluster     *execCluster `json:"cluster,omitempty"`
	Interactive bool         `json:"interactive"`
}

type execCluster struct {
	Server             string          `json:"server"`
	ServerName         string          `json:"tls-server-name,omitempty"`
	Insecure           bool            `json:"insecure-skip-tls-verify,omitempty"`
	CAData             []byte          `json:"certificate-authority-data,omitempty"`
	ProxyURL           string          `json:"proxy-url,omitempty"`
	DisableCompression bool            `json:"disable-compression,omitempty"`
	Config             json.RawMessage `json:"config"`
}

// info is the variable's value.
func (a *execAuthenticator) info(now time.Time, interactive bool) (string, error) {
	info := execInfo{Kind: "ExecCredential", APIVersion: a.plugin.APIVersion, Spec: execSpec{Interactive: interactive}}
	if a.plugin.ProvideClusterInfo {
		// Plugins get the authorities themselves, also where the kubeconfig names a file.
		authority, err := a.authority.content(now)
		if err != nil {
			return "", fmt.Errorf("read the certificate authority for it: %w", err)
		}
		cluster := a.cluster
		cluster.CAData = authority
		info.Spec.Cluster = &cluster
	}
	value, err := json.Marshal(info)
	if err != nil {
		return "", fmt.Errorf("write KUBERNETES_EXEC_INFO: %w", err)
	}
	return string(value), nil
}
