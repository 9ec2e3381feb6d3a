#!/bin/sh
# backup.sh [-nv] DIR... - archives each DIR into $BACKUP_DIR
set -eu

: "${BACKUP_DIR:=$HOME/backups}"
: "${KEEP:=3}"
VERBOSE=0
DRY_RUN=0

log() {
	[ "$VERBOSE" = 1 ] && printf '%s\n' "$*" >&2
	return 0
}

# runs a command, or only shows it with -n
run() {
	if [ "$DRY_RUN" = 1 ]; then
		printf 'would run: %s\n' "$*"
	else
		"$@"
	fi
}

usage() {
	cat <<-EOF
	usage: $0 [-nv] DIR...
	  -n   dry run: only show what would be done
	  -v   say what is done
	  \$KEEP archives are kept (now $KEEP)
	EOF
	exit 2
}

while getopts nv opt; do
	case $opt in
	n) DRY_RUN=1 ;;
	v) VERBOSE=1 ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage

run mkdir -p -- "$BACKUP_DIR"
stamp=$(date +%Y%m%d-%H%M%S)
digits='[0-9][0-9][0-9][0-9][0-9][0-9]'

for dir in "$@"; do
	base=$(basename -- "$dir")
	parent=$(dirname -- "$dir")
	name=$(printf '%s\n' "$base" | sed 's/[^A-Za-z0-9._-]/_/g')
	archive=$BACKUP_DIR/$name-$stamp.tar.gz
	log "$dir -> $archive"
	run tar -czf "$archive" -C "$parent" -- "$base"

	# a dry run has made no new archive, so one old one more would stay
	skip=$((KEEP + 1))
	[ "$DRY_RUN" = 0 ] || skip=$KEEP
	[ "$skip" -gt 0 ] || skip=1

	# the stamp sorts by time: newest first
	for old in "$BACKUP_DIR/$name"-[0-9][0-9]$digits-$digits.tar.gz; do
		[ -e "$old" ] && printf '%s\n' "$old"
	done | sort -r | tail -n "+$skip" | while IFS= read -r old; do
		log "remove $old"
		run rm -f -- "$old"
	done
done
