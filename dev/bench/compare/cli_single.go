//go:build unix

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
)

// singleTasks are command lines about a single object. Their writes are dry runs, or change nothing from the second round on.
var singleTasks = []string{
	"cli-describe", "cli-events", "cli-cluster-info", "cli-replace", "cli-taint", "cli-expose", "cli-autoscale", "cli-run", "cli-certificate",
}

// Names of the objects of singleTasks.
const (
	benchNode    = "bench-node"
	benchRequest = "bench-request"
)

// createSingle creates the objects of singleTasks.
func (s *server) createSingle(ctx context.Context) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "bench"}}, key)
	if err != nil {
		return err
	}
	request := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	for _, object := range []struct{ path, body string }{
		{"/apis/apps/v1/namespaces/" + s.conn.Namespace() + "/deployments", string(deploymentBody)},
		{"/api/v1/nodes", `{"metadata":{"name":"` + benchNode + `"}}`},
		{"/apis/certificates.k8s.io/v1/certificatesigningrequests", fmt.Sprintf(
			`{"metadata":{"name":%q},"spec":{"request":%q,"signerName":"bench.example.com/signer","usages":["client auth"]}}`, benchRequest, request)},
	} {
		if err := s.write(ctx, http.MethodPost, object.path, []byte(object.body)); err != nil {
			return err
		}
	}
	return nil
}
