#!/bin/sh
# backup.sh [-v] DIR... - archives each DIR into $BACKUP_DIR
set -eu

: "${BACKUP_DIR:=$HOME/backups}"
: "${KEEP:=3}"
VERBOSE=0

log() {
	[ "$VERBOSE" = 1 ] && printf '%s\n' "$*" >&2
	return 0
}

usage() {
	cat <<-EOF
	usage: $0 [-v] DIR...
	  -v   say what is done
	  \$KEEP archives are kept (now $KEEP)
	EOF
	exit 2
}

while getopts v opt; do
	case $opt in
	v) VERBOSE=1 ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage

mkdir -p $BACKUP_DIR
stamp=$(date +%Y%m%d-%H%M%S)

for dir in $@; do
	name=$(basename $dir | sed 's/[^A-Za-z0-9._-]/_/g')
	archive=$BACKUP_DIR/$name-$stamp.tar.gz
	log "$dir -> $archive"
	tar -czf $archive -C $(dirname $dir) $(basename $dir)
	ls -t $BACKUP_DIR/$name-*.tar.gz | tail -n +$KEEP | while read old; do
		log "remove $old"
		rm -f $old
	done
done
