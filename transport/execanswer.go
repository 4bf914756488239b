package transport

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/anykind/anykind/transport/kubeconfig"
	"sigs.k8s.io/yaml"
)

// execAnswer is the ExecCredential that the program prints.
type execAnswer struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Status     *struct {
		ExpirationTimestamp   *string `json:"expirationTimestamp"`
		Token                 string  `json:"token"`
		ClientCertificateData string  `json:"clientCertificateData"`
		ClientKeyData         string  `json:"clientKeyData"`
	} `json:"status"`
}

// parseExecAnswer reads what the program printed, and checks that it is what was asked for. The zero time means that
// it does not expire. None of its errors shows anything of the answer.
func parseExecAnswer(data []byte, apiVersion string) (who *identity, expires time.Time, err error) {
	answer, err := decodeExecAnswer(data)
	if err != nil {
		return nil, time.Time{}, err
	}
	switch {
	case answer.Kind != "ExecCredential":
		return nil, time.Time{}, errors.New("it printed an object of another kind than ExecCredential: " +
			"is the command the one that its documentation gives for kubeconfigs?")
	case answer.APIVersion != apiVersion:
		return nil, time.Time{}, otherVersion(answer.APIVersion, apiVersion)
	case answer.Status == nil:
		return nil, time.Time{}, errors.New("it printed an ExecCredential without a status: there is no credential in it")
	}
	status := answer.Status
	who = &identity{}
	if who.authorization, err = tokenOf(status.Token); err != nil {
		return nil, time.Time{}, err
	}
	if who.certificate, err = certificateOf(status.ClientCertificateData, status.ClientKeyData); err != nil {
		return nil, time.Time{}, err
	}
	if who.authorization == "" && who.certificate == nil {
		return nil, time.Time{}, errors.New("it printed neither a token nor a client certificate: you may have to log in first")
	}
	if status.ExpirationTimestamp != nil {
		// Not wrapped: the error quotes what it could not read.
		if expires, err = time.Parse(time.RFC3339, *status.ExpirationTimestamp); err != nil {
			return nil, time.Time{}, errors.New("it printed an expirationTimestamp that is no RFC 3339 time like 2006-01-02T15:04:05Z")
		}
	}
	if c := who.certificate; c != nil && c.Leaf != nil && (expires.IsZero() || c.Leaf.NotAfter.Before(expires)) {
		expires = c.Leaf.NotAfter
	}
	return who, expires, nil
}

// decodeExecAnswer reads JSON, and YAML as kubectl does. The decoders' errors may quote what they read.
func decodeExecAnswer(data []byte) (*execAnswer, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, errors.New("it printed nothing: see what it wrote to standard error, or run it by hand")
	}
	var err error
	if data[0] != '{' {
		data, err = yaml.YAMLToJSON(data)
	}
	answer := &execAnswer{}
	if err == nil {
		err = json.Unmarshal(data, answer)
	}
	if err == nil {
		return answer, nil
	}
	return nil, errors.New("what it printed is no ExecCredential in JSON: run it by hand to see; " +
		"messages for people belong on standard error")
}

func otherVersion(got, want string) error {
	switch got {
	case kubeconfig.ExecV1, kubeconfig.ExecV1Beta1, "client.authentication.k8s.io/v1alpha1":
		return fmt.Errorf("it answers in the version %s, and the kubeconfig asks for %s: make the kubeconfig's apiVersion the plugin's, "+
			"or update the plugin", got, want)
	default: // what it printed is not shown
		return fmt.Errorf("it answers in another apiVersion than the kubeconfig's %s: update the plugin", want)
	}
}

// tokenOf is the header's value for a token, "" for none.
func tokenOf(token string) (string, error) {
	token = strings.TrimSpace(token)
	if token == "" {
		return "", nil
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("the token holds a control character, which no request can carry")
	}
	return bearer(token), nil
}

func certificateOf(certificate, key string) (*tls.Certificate, error) {
	if (certificate == "") != (key == "") {
		return nil, errors.New("it printed only one of clientCertificateData and clientKeyData: they need each other")
	}
	if certificate == "" {
		return nil, nil
	}
	parsed, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		// Not wrapped: nothing of the answer is shown.
		return nil, errors.New("the client certificate and key that it printed are no PEM pair that belongs together")
	}
	return &parsed, nil
}
