package admission

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/anykind/anykind/apitest/internal/nested"
)

const (
	certificatesGroup   = "certificates.k8s.io"
	certificateRequests = "certificatesigningrequests." + certificatesGroup
	clientSigner        = "kubernetes.io/kube-apiserver-client"
)

// checkCertificate rejects a CertificateSigningRequest if the user lacks a right to its signer.
func (r *pluginRequest) checkCertificate() error {
	signer := nested.String(r.OldObject, "spec", "signerName")
	switch {
	case r.OldObject == nil:
		return checkSubject(r.Object)
	case r.Subresource == "approval" && !r.mayUse("approve", signer):
		return fmt.Errorf("user not permitted to approve requests with signerName %q", signer)
	case r.Subresource != "status":
	case nested.Map(r.OldObject, "status")["certificate"] == nested.Map(r.Object, "status")["certificate"] &&
		equality.Semantic.DeepEqual(nested.Maps(r.OldObject, "status", "conditions"), nested.Maps(r.Object, "status", "conditions")):
	case !r.mayUse("sign", signer):
		return fmt.Errorf("user not permitted to sign requests with signerName %q", signer)
	}
	return nil
}

// checkBundle rejects a ClusterTrustBundle if the user may not attest for its signer.
func (r *pluginRequest) checkBundle() error {
	signer := nested.String(r.Object, "spec", "signerName")
	if signer != "" && !r.mayUse("attest", signer) {
		return fmt.Errorf("user not permitted to attest for signerName %q", signer)
	}
	return nil
}

// mayUse reports whether the user has the verb on the signer or on its whole domain.
func (r *pluginRequest) mayUse(verb, signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	return r.allows(verb, certificatesGroup, "signers", signer) ||
		r.allows(verb, certificatesGroup, "signers", domain+"/*")
}

// checkSubject rejects a client certificate with the group system:masters.
func checkSubject(request object) error {
	spec := nested.Map(request, "spec")
	if nested.String(spec, "signerName") != clientSigner {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(nested.String(spec, "request"))
	if err != nil {
		return fmt.Errorf("failed to parse CSR: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("failed to parse CSR: PEM block type must be CERTIFICATE REQUEST")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return fmt.Errorf("failed to parse CSR: %w", err)
	}
	if slices.Contains(parsed.Subject.Organization, "system:masters") {
		return fmt.Errorf("use of %s signer with system:masters group is not allowed", clientSigner)
	}
	return nil
}
