// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/bundle"

	"github.com/fumehood/fumehood/internal/policy"
)

// strong are the hashes that a signature may name; opa also accepts MD5 and SHA-1.
var strong = []string{string(bundle.SHA256), string(bundle.SHA384), string(bundle.SHA512), string(bundle.SHA512256)}

// plugin is the plugin that opa build names by default.
const plugin = "_default"

const hintSignature = "give the key that signed it, or sign it with the matching private key and for the required scope (--policy-scope, or --scope of bundle verify): fumehood policy bundle sign, or opa build --signing-key"

// verifySignature checks that the bundle has exactly one signature, that one of the keys made it for
// the scope, and that it covers exactly the files of the bundle. It returns the key's name.
func (keys Keys) verifySignature(name string, files []policy.File, scope string) (string, error) {
	content := fileNamed(files, signaturesName)
	if content == nil {
		return "", stopError(CodeSignature, hintSignature, nil, "%s is not signed, but a key was given", name)
	}
	var wrong error
	for _, k := range keys {
		signed, err := k.signedFiles(content, scope)
		if err == nil {
			err = checkCoverage(signed, files)
		}
		if err == nil {
			return k.name, nil
		}
		wrong = err
	}
	who := "the given key has not"
	if len(keys) > 1 {
		who = fmt.Sprintf("none of %d keys has", len(keys))
	}
	wrong = fmt.Errorf("%s signed it as it is: %w", who, wrong)
	return "", stopError(CodeSignature, hintSignature, wrong, "invalid signature of %s", name)
}

// signedFiles lists the files that the key has signed.
func (k *Key) signedFiles(content []byte, scope string) (map[string]bundle.FileInfo, error) {
	var config bundle.SignaturesConfig
	if err := json.Unmarshal(content, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", signaturesName, err)
	}
	if len(config.Signatures) != 1 || config.Plugin != "" && config.Plugin != plugin {
		return nil, fmt.Errorf("%s: want one signature and no plugin", signaturesName)
	}
	algorithm, err := k.tokenAlgorithm(config.Signatures[0])
	if err != nil {
		return nil, err
	}
	const id = "the only one" // whatever id the signature has
	return bundle.VerifyBundleSignature(config, bundle.NewVerificationConfig(
		map[string]*bundle.KeyConfig{id: {Key: k.material, Algorithm: algorithm, Scope: scope}}, id, scope, nil))
}

// tokenAlgorithm is the algorithm of the signature, which must be one of the key's. Any other is
// refused before the key is used.
func (k *Key) tokenAlgorithm(token string) (string, error) {
	header, _, _ := strings.Cut(token, ".")
	data, err := base64.RawURLEncoding.DecodeString(header)
	if err != nil {
		return "", errors.New("it is not a JWT")
	}
	var h struct {
		Algorithm string `json:"alg"`
		Critical  any    `json:"crit"`
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return "", errors.New("it is not a JWT")
	}
	if !slices.Contains(k.algorithms, h.Algorithm) || h.Critical != nil {
		return "", fmt.Errorf("its algorithm is %q, but the key is for %s", h.Algorithm,
			strings.Join(k.algorithms, ", "))
	}
	return h.Algorithm, nil
}

func checkCoverage(signed map[string]bundle.FileInfo, files []policy.File) error {
	for name, f := range signed {
		if !slices.Contains(strong, f.Algorithm) {
			return fmt.Errorf("the hash %[2]q of %[1]q is weaker than SHA-256", name, f.Algorithm)
		}
	}
	for _, f := range files {
		if f.Name == signaturesName {
			continue
		}
		if err := verifyFile(f, signed); err != nil {
			return err
		}
	}
	for name := range signed {
		return fmt.Errorf("%q is signed but missing", name)
	}
	return nil
}
